"""The fixes of a run, with where they stand in the user's code."""

from __future__ import annotations

import ast
import os
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from ..source import Source, SourceError, syntax_tree
from .judgement import Applied, without_owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..rule import Rule
    from ..workspace.tasks import Rewrote
    from .trace import Process

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def applied(results: Iterable[Rewrote], top: str, rules: Mapping[str, Rule]) -> list[Applied]:
    """All fixes of some files, with their function and line in the original; paths are relative to `top`."""
    return [fix for result in results if result.fixed for fix in _of_file(result, top, rules)]


def _of_file(result: Rewrote, top: str, rules: Mapping[str, Rule]) -> Iterator[Applied]:
    source = Source.decode(result.path, result.before)
    tree = syntax_tree(source.text)
    file = os.path.relpath(os.path.realpath(result.path), top).replace(os.sep, "/")
    for finding, how in zip(result.fixed, result.applied, strict=True):
        line = source.position(how.group.offset).line
        effects = rules[finding.rule].effects
        yield Applied(finding.rule, finding.safety, effects, file, _function(tree, line), line, finding.message)


def _function(tree: ast.Module, line: int) -> str:
    """The name of the innermost function around a line, its decorators included."""
    around = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and _first_line(node) <= line <= (node.end_lineno or 0)]
    return max(around, key=lambda node: node.lineno).name if around else "<module>"


def edited_lines(fixes: Iterable[Applied], sources: Mapping[str, bytes]) -> dict[str, list[int]]:
    """For each file the lines (from 1) whose execution shows that a fix was reached: those of the statements that are fixed.

    Of a fixed function, or of a block, the statements inside count: a `def` is run where nobody calls it.
    """
    lines: dict[str, set[int]] = {}
    for fix in fixes:
        lines.setdefault(fix.file, set()).update(_lines(sources[fix.file], fix.line))
    return {file: sorted(found) for file, found in lines.items()}


def _lines(data: bytes, line: int) -> set[int]:
    try:
        tree = syntax_tree(Source.decode("", data).text)
    except (SourceError, SyntaxError):
        return {line}
    innermost: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and _first_line(node) <= line <= (node.end_lineno or 0):
            innermost = node if innermost is None or _first_line(node) >= _first_line(innermost) else innermost
    if innermost is None:
        return {line}
    if isinstance(innermost, (*_FUNCTIONS, ast.ClassDef)):
        return {part.lineno for part in innermost.body}
    if isinstance(innermost, ast.Expr) and isinstance(innermost.value, ast.Constant):
        # A docstring isn't run: what stands at it is reached with the next line.
        return set(range(innermost.lineno, (innermost.end_lineno or innermost.lineno) + 2))
    return set(range(innermost.lineno, (innermost.end_lineno or innermost.lineno) + 1))


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def original_lines(before: bytes, after: bytes) -> list[int]:
    """For each line of the new text, by number from 1, the line of the old text that it comes from, or stands at."""
    old, new = (data.splitlines() for data in (before, after))
    lines = [1] * (len(new) + 1)
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for number in range(new_start, new_end):
            offset = number - new_start
            lines[number + 1] = 1 + (start + offset if tag == "equal" else min(start + offset, max(start, end - 1)))
    return lines


def moved_lines(edited: Mapping[str, Sequence[int]], lines: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Lines of the original files, as they are numbered in changed ones; `lines` is `original_lines` of each changed file."""

    def moved(file: str) -> list[int]:
        return [number for number, original in enumerate(lines[file]) if number and original in edited[file]]

    return {file: moved(file) if file in lines else list(edited[file]) for file in edited}


def in_original_lines(process: Process, lines: Mapping[str, Sequence[int]]) -> Process:
    """A process that ran changed files, with the lines that it reached numbered as in the original ones."""
    reached = process.totals.get("reached") or {}
    found = [[file, lines[file][line] if file in lines and line < len(lines[file]) else line] for file, line in reached.get("lines", ())]
    return replace(process, totals={**process.totals, "reached": {**reached, "lines": found}}) if found else process


def with_reached(fixes: Sequence[Applied], processes: Sequence[Process], sources: Mapping[str, bytes]) -> list[Applied]:
    """The fixes, with whether their code was run."""
    reached = [process.totals.get("reached") or {} for process in processes]
    lines = {(file, line) for part in reached for file, line in part.get("lines", ())}
    complete = bool(reached) and all(part.get("complete") for part in reached)
    seen = {function for process in processes for function in _functions(process)}
    return [replace(fix, reached=_is_reached(fix, lines, complete, seen, sources)) for fix in fixes]


def _functions(process: Process) -> Iterator[str]:
    """The functions that something was recorded in, as `file:function` without classes."""
    for name in ("forwards", "backwards", "steps"):
        for row in process.totals.get(name, ()):
            yield from (without_owner(function) for function in row[3])
    for rows in process.rows.values():
        yield from (without_owner(f"{row.place.file}:{row.place.function}") for row in rows)


def _is_reached(fix: Applied, lines: set[tuple[str, int]], complete: bool, seen: set[str], sources: Mapping[str, bytes]) -> bool | None:
    if any((fix.file, line) in lines for line in _lines(sources[fix.file], fix.line)):
        return True
    if complete:
        return False
    return True if f"{fix.file}:{fix.function}" in seen else None
