"""Where an import that a fix needs belongs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .segments import newline_of

if TYPE_CHECKING:
    from ..source import Source


def is_imported(tree: ast.Module, module: str, before: int) -> bool:
    """Whether `import module` stands at top level before a line."""
    for statement in tree.body:
        if isinstance(statement, ast.Import) and statement.lineno < before:
            for alias in statement.names:
                if alias.asname is None and (alias.name == module or alias.name.startswith(module + ".")):
                    return True
    return False


def import_line(source: Source, tree: ast.Module, module: str, before: int) -> tuple[int, bytes]:
    """The offset and the text of a new `import module`: above the first import of its parts, or after the last import.

    Only top-level imports above line `before` count.
    """
    newline = newline_of(source).encode()
    line = b"import " + module.encode()
    relative = _first_part(tree, module, before)
    if relative is not None:
        return source.line_starts[relative.lineno - 1], line + newline
    anchor = _anchor(tree, before)
    if anchor is None:
        return _after_header(source, tree), line + newline
    end = source.position(source.span(anchor).end).line
    if end < len(source.line_starts):
        return source.line_starts[end], line + newline
    return len(source.data), newline + line


def _first_part(tree: ast.Module, module: str, before: int) -> ast.stmt | None:
    """The first `import module.part` or `from module import name`; the new line reads best above it."""
    for statement in tree.body:
        if statement.lineno < before and isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
            if any(name == module or name.startswith(module + ".") for name in names):
                return statement
    return None


def _anchor(tree: ast.Module, before: int) -> ast.stmt | None:
    """The last import above a line; failing that, the docstring or a `from __future__` import."""
    found: ast.stmt | None = None
    for place, statement in enumerate(tree.body):
        if statement.lineno >= before:
            break
        docstring = place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or (docstring and isinstance(statement.value.value, str)):  # type: ignore[attr-defined]  # `docstring` says so
            found = statement
    return found


def _after_header(source: Source, tree: ast.Module) -> int:
    """The start of the first statement, its comments left above: shebang, encoding and licence keep their place."""
    first = tree.body[0]
    decorators = getattr(first, "decorator_list", [])
    line: int = min([first.lineno, *(d.lineno for d in decorators)])
    return source.line_starts[line - 1]
