"""The imports that fixes need: where they belong, and the file with them in it."""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ..source import Span
from .claims import targets
from .kinds import NeedImport
from .segments import NotFound, newline_of
from .syntax import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..source import Source
    from .kinds import Edit

    Groups = Mapping[int, Sequence[Edit]]


def with_imports(source: Source, tree: ast.Module, groups: Groups) -> tuple[Source, ast.Module, Groups]:
    """The file with the imports that groups need, and the other edits at their places in it; raises `NotFound` and `NotPython`."""
    needed = {module: at for module, at in _needed(groups).items() if not _is_imported(source, tree, module, at)}
    rest = {i: [edit for edit in group if not isinstance(edit, NeedImport)] for i, group in groups.items()}
    if not needed:
        return source, tree, rest
    lines = _lines(source, tree, needed)
    data = source.data
    for offset in sorted(lines, reverse=True):
        data = data[:offset] + lines[offset] + data[offset:]
    new = source.replace(data)
    return new, parsed(new.text), {i: [_shifted(edit, lines) for edit in group] for i, group in rest.items()}


def _lines(source: Source, tree: ast.Module, needed: Mapping[str, int]) -> dict[int, bytes]:
    """The new lines by offset."""
    lines: dict[int, bytes] = {}
    newline = (newline_of(source.data) or "\n").encode()
    for module, at in sorted(needed.items()):
        offset = _place(source, tree, module, at)
        lines[offset] = lines.get(offset, b"") + b"import " + module.encode() + newline
    return lines


def _needed(groups: Groups) -> dict[str, int]:
    """The modules wanted, each with the offset of the first edit that wants it."""
    needed: dict[str, int] = {}
    for group in groups.values():
        first = min((span.start for edit in group for span in targets(edit)), default=0)
        for edit in group:
            if isinstance(edit, NeedImport):
                needed[edit.module] = min(first, needed.get(edit.module, first))
    return needed


def _is_imported(source: Source, tree: ast.Module, module: str, before: int) -> bool:
    """Whether a top-level import above an offset binds the module's name to it."""
    for statement in tree.body:
        if isinstance(statement, ast.Import) and source.span(statement).end <= before:
            for alias in statement.names:
                if alias.asname is None and (alias.name == module or alias.name.startswith(module + ".")):
                    return True
    return False


def _place(source: Source, tree: ast.Module, module: str, before: int) -> int:
    """Where `import module` belongs: above the first import of its parts, else below the last import above an offset."""
    imports = [i for i, s in enumerate(tree.body) if isinstance(s, (ast.Import, ast.ImportFrom)) and source.span(s).end <= before]
    for i in imports:
        if _is_part(tree.body[i], module) and _begins_line(tree, i):
            return source.line_starts[tree.body[i].lineno - 1]
    prologue = _prologue(tree)
    anchor = next((i for i in sorted({*imports, *prologue}, reverse=True) if _ends_line(tree, i)), None)
    below = source.position(source.span(tree.body[anchor]).end).line if anchor is not None else len(source.line_starts)
    if below < len(source.line_starts):
        return source.line_starts[below]
    if prologue:
        message = "the import it needs would have to share a line with other code"
        raise NotFound(message)
    return _above_code(source, tree)


def _prologue(tree: ast.Module) -> list[int]:
    """The places of what must come first: the docstring and `from __future__` imports."""
    futures = [i for i, s in enumerate(tree.body) if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    return futures if ast.get_docstring(tree, clean=False) is None else [0, *futures]


def _is_part(statement: ast.stmt, module: str) -> bool:
    """Whether a statement is `import module.part` or `from module import name`."""
    names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [getattr(statement, "module", None) or ""]
    return any(name == module or name.startswith(module + ".") for name in names)


def _begins_line(tree: ast.Module, i: int) -> bool:
    return i == 0 or tree.body[i - 1].end_lineno != tree.body[i].lineno


def _ends_line(tree: ast.Module, i: int) -> bool:
    """Whether no other statement stands behind one on its line."""
    return i + 1 == len(tree.body) or tree.body[i].end_lineno != tree.body[i + 1].lineno


def _above_code(source: Source, tree: ast.Module) -> int:
    """The start of the first statement, its comments left above: shebang, encoding and licence keep their place."""
    first = tree.body[0]
    line: int = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", []))])
    return source.line_starts[line - 1]


def _shifted(edit: Edit, lines: Mapping[int, bytes]) -> Edit:
    """The same edit in the text with the lines put in."""

    def moved(span: Span) -> Span:
        start = sum(len(line) for offset, line in lines.items() if offset <= span.start)
        end = sum(len(line) for offset, line in lines.items() if offset < span.end)
        return Span(span.start + start, span.end + end)

    values = {field.name: getattr(edit, field.name) for field in fields(edit)}
    spans: dict[str, Any] = {name: moved(value) for name, value in values.items() if isinstance(value, Span)}
    return replace(edit, **spans)
