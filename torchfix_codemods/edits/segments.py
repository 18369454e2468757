"""The smallest runs of whole lines that edits work on: found on `ast` and bytes, before libcst sees anything."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..source import Source

_BLANK = re.compile(rb"[ \t\f]*")
_CONTINUED = re.compile(rb"[ \t\f;]*\\(?:\r\n|\r|\n)")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class NotFound(Exception):
    """A span that no statement of the file contains."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive statements of one block."""

    block: list[ast.stmt]
    first: int
    last: int


def with_neighbour(run: Run) -> Run:
    """The run and the statement after it, or before it: what is left of a block that loses a statement."""
    if run.last + 1 < len(run.block):
        return Run(run.block, run.first, run.last + 1)
    return Run(run.block, max(0, run.first - 1), run.last)


@dataclass(frozen=True, slots=True)
class Segment:
    """Whole lines of the file that hold one run, and the indentation they begin with."""

    span: Span
    indentation: bytes


class Layout:
    """Statements of a file by place."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self._source, self._tree = source, tree
        self._parents: dict[int, tuple[list[ast.stmt], ast.stmt | None]] = {}
        self._index(tree.body, None)

    def _index(self, block: list[ast.stmt], parent: ast.stmt | None) -> None:
        stack = [(block, parent)]
        while stack:
            current, owner = stack.pop()
            for statement in current:
                self._parents[id(statement)] = (current, owner)
                stack += [(inner, statement) for inner in _blocks(statement)]

    def start(self, statement: ast.stmt) -> int:
        """Where a statement begins, its decorators included."""
        decorators = getattr(statement, "decorator_list", [])
        if not decorators:
            return self._source.span(statement).start
        first = min(self._source.span(d).start for d in decorators)
        return self._source.data.rindex(b"@", 0, first)

    def end(self, statement: ast.stmt) -> int:
        """Where a statement ends."""
        return self._source.span(statement).end

    def innermost(self, span: Span) -> Run:
        """The smallest statement that contains a span; raises `NotFound`."""
        found, inside = None, self._within(self._tree.body, span)
        while inside is not None:
            found = inside
            nested = (self._within(block, span) for block in _blocks(found.block[found.first]))
            inside = next((run for run in nested if run is not None), None)
        if found is None:
            message = "the code to change could not be located"
            raise NotFound(message)
        return found

    def _within(self, block: list[ast.stmt], span: Span) -> Run | None:
        """The statement of a block that contains a span."""
        place = bisect_right(block, span.start, key=self.start) - 1
        return Run(block, place, place) if place >= 0 and span.end <= self.end(block[place]) else None

    def common(self, runs: Sequence[Run]) -> Run:
        """The smallest run that holds all of several."""
        result = runs[0]
        for other in runs[1:]:
            result = self._join(result, other)
        return result

    def _join(self, first: Run, second: Run) -> Run:
        outer = {id(run.block): run for run in self._outwards(first)}
        for run in self._outwards(second):
            if id(run.block) in outer:
                match = outer[id(run.block)]
                return Run(run.block, min(match.first, run.first), max(match.last, run.last))
        return Run(self._tree.body, 0, len(self._tree.body) - 1)

    def _outwards(self, run: Run) -> Iterator[Run]:
        while True:
            yield run
            owner = self._parents[id(run.block[run.first])][1]
            if owner is None:
                return
            run = self._single(owner)

    def _single(self, statement: ast.stmt) -> Run:
        block = self._parents[id(statement)][0]
        index = next(i for i, s in enumerate(block) if s is statement)
        return Run(block, index, index)

    def segment(self, run: Run) -> Segment:
        """The whole lines of a run: grown over semicolons, comments above, one-line suites and `elif`; raises `NotFound`."""
        run = self._beginning_a_line(run)
        start = self.start(run.block[run.first])
        line = self._line_start(start)
        # The tokenizer counts indentation anew behind a form feed.
        feed = self._source.data.rfind(b"\f", line, start) + 1
        prefix = self._source.data[feed or line : start]
        begin = feed or self._with_comments_above(line, prefix)
        return Segment(Span(begin, self._end_of_lines(run, prefix)), prefix)

    def _beginning_a_line(self, run: Run) -> Run:
        """The run, or the statement around it that begins its line."""
        while True:
            run = self._whole_lines(run)
            start = self.start(run.block[run.first])
            if _BLANK.fullmatch(self._source.data[self._line_start(start) : start]) and not self._is_elif(start, run):
                return run
            owner = self._parents[id(run.block[run.first])][1]
            if owner is None:
                message = "the statement shares its line with others"
                raise NotFound(message)
            run = self._single(owner)

    def _is_elif(self, start: int, run: Run) -> bool:
        return isinstance(run.block[run.first], ast.If) and self._source.data.startswith(b"elif", start)

    def _whole_lines(self, run: Run) -> Run:
        first, last, block = run.first, run.last, run.block
        while first and block[first - 1].end_lineno == block[first].lineno and not getattr(block[first], "decorator_list", None):
            first -= 1
        while last + 1 < len(block) and block[last].end_lineno == block[last + 1].lineno:
            last += 1
        return Run(block, first, last)

    def _line(self, offset: int) -> int:
        return bisect_right(self._source.line_starts, offset)

    def _line_start(self, offset: int) -> int:
        return self._source.line_starts[self._line(offset) - 1]

    def _end_of_lines(self, run: Run, prefix: bytes) -> int:
        """Past the line end of a run, and past the comments below it that end its block."""
        number = self._last_line(self.end(run.block[run.last]))
        if run.last + 1 == len(run.block):
            number = self._last_comment(number, prefix)
        starts = self._source.line_starts
        return starts[number] if number < len(starts) else len(self._source.data)

    def _last_line(self, offset: int) -> int:
        """The line that a statement's end stands in, or the one that a backslash behind it leads to."""
        starts, data = self._source.line_starts, self._source.data
        number = self._line(offset)
        while number < len(starts) and _CONTINUED.fullmatch(data, offset, starts[number]):
            offset, number = starts[number], number + 1
        return number

    def _last_comment(self, number: int, prefix: bytes) -> int:
        """The last of the comments, at an indentation, that stand below a line with nothing but blank lines between."""
        starts, last = self._source.line_starts, number
        while number < len(starts):
            line = self._source.data[starts[number] : starts[number + 1] if number + 1 < len(starts) else None]
            number += 1
            if line.startswith(prefix + b"#"):
                last = number
            elif line.strip():
                break
        return last

    def _with_comments_above(self, line: int, prefix: bytes) -> int:
        """The start of the comment lines directly above a line, at its own indentation."""
        starts, data = self._source.line_starts, self._source.data
        number = self._line(line) - 1
        while number > 0 and _is_comment_at(data, starts[number - 1], prefix) and not data.startswith(b"#!", starts[number - 1]):
            number -= 1
        return starts[number]


def _is_comment_at(data: bytes, start: int, prefix: bytes) -> bool:
    """Whether a line is a comment indented exactly as `prefix`."""
    return data.startswith(prefix + b"#", start)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks directly inside a statement, in any order."""
    for name in _BLOCKS:
        child = getattr(statement, name, None)
        if child and isinstance(child[0], ast.stmt):
            yield child
        elif child:
            yield from (inner.body for inner in child)


def indentation_unit(source: Source, tree: ast.Module) -> str:
    """One step of the file's indentation, from its first indented block; four spaces when it has none."""
    stack: list[ast.stmt] = list(tree.body)
    for statement in stack:
        for block in _blocks(statement):
            outer, inner = source.position(source.span(statement).start), block[0]
            line = source.data[source.line_starts[inner.lineno - 1] :]
            blank = _BLANK.match(line)
            width = len(blank.group()) if blank else 0
            if inner.lineno > outer.line and width > outer.column - 1 >= 0 and inner.col_offset == width:
                return line[outer.column - 1 : width].decode()
    return "    "


def newline_of(data: bytes) -> str | None:
    """The first line end of a text."""
    match = re.search(rb"\r\n|\r|\n", data)
    return match.group().decode() if match else None
