"""Apply groups of edits to a file: one pass, each group whole or not at all, bytes elsewhere untouched."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from ..source import Span
from .claims import clash, group_claims, targets
from .imports import import_line, is_imported
from .kinds import NeedImport
from .parse import Refusal, parse_segment, print_segment
from .segments import Layout, NotFound, Segment, indentation_unit, newline_of
from .transform import SegmentTransformer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..source import Source
    from .kinds import Edit
    from .segments import Run


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of one pass over a file."""

    data: bytes
    """The new text in UTF-8."""
    applied: tuple[int, ...]
    """Indices of the groups that are in it."""
    waiting: tuple[int, ...]
    """Groups that overlap an earlier one: they belong to the next pass."""
    refused: Mapping[int, str]
    """Groups that can't be applied without damage, and why."""


@dataclass(frozen=True, slots=True)
class _Work:
    """One segment to rewrite, and the groups with edits in it."""

    run: Run
    segment: Segment
    groups: frozenset[int]


class _Failure(Exception):
    """A segment that could not be rewritten with these groups."""

    def __init__(self, groups: frozenset[int], reason: str) -> None:
        super().__init__(reason)
        self.groups, self.reason = groups, reason


def apply_groups(source: Source, tree: ast.Module, groups: Sequence[Sequence[Edit]]) -> Applied:
    """Apply all groups that don't overlap an earlier one; nothing is raised for a group that can't be applied."""
    chosen, waiting = _choose(groups)
    refused: dict[int, str] = {}
    while chosen:
        try:
            data = _Pass(source, tree, {i: groups[i] for i in chosen}).run()
        except _Failure as failure:
            chosen = _without(chosen, failure, waiting, refused)
        else:
            return Applied(data, tuple(chosen), tuple(waiting), refused)
    return Applied(source.data, (), tuple(waiting), refused)


def _choose(groups: Sequence[Sequence[Edit]]) -> tuple[list[int], list[int]]:
    chosen, waiting, taken = list[int](), list[int](), list[Span]()
    for i, group in enumerate(groups):
        wanted = group_claims(group)
        if clash(taken, wanted):
            waiting.append(i)
        else:
            chosen.append(i)
            taken += wanted
    return chosen, waiting


def _without(chosen: list[int], failure: _Failure, waiting: list[int], refused: dict[int, str]) -> list[int]:
    """Drop the guilty: a group that fails alone is refused; of several, all but the first wait for the next pass."""
    if len(failure.groups) == 1:
        refused.update(dict.fromkeys(failure.groups, failure.reason))
        return [i for i in chosen if i not in failure.groups]
    later = failure.groups - {min(failure.groups)}
    waiting += sorted(later)
    return [i for i in chosen if i not in later]


class _Pass:
    """One attempt with a fixed set of groups."""

    def __init__(self, source: Source, tree: ast.Module, groups: Mapping[int, Sequence[Edit]]) -> None:
        self._source, self._tree, self._groups = source, tree, groups
        self._layout = Layout(source, tree)
        self._newline, self._unit = newline_of(source), indentation_unit(source, tree)

    def run(self) -> bytes:
        """The new text; raises `_Failure`."""
        patches = [(work.segment.span, self._rewrite(work)) for work in self._works()]
        patches += [(Span(offset, offset), line) for offset, line in self._imports().items()]
        data = self._source.data
        for span, new in sorted(patches, reverse=True):
            data = data[: span.start] + new + data[span.end :]
        try:
            ast.parse(data.decode())
        except (SyntaxError, ValueError, RecursionError) as error:
            raise _Failure(frozenset(self._groups), f"the result would not be valid Python ({error})") from None
        return data

    def _works(self) -> list[_Work]:
        works: list[_Work] = []
        for i, group in self._groups.items():
            for edit in group:
                if not isinstance(edit, NeedImport):
                    works = self._merged(works, self._work(i, edit))
        return works

    def _work(self, group: int, edit: Edit) -> _Work:
        try:
            run = self._layout.common([self._layout.innermost(span) for span in targets(edit)])
            return _Work(run, self._layout.segment(run), frozenset({group}))
        except NotFound as error:
            raise _Failure(frozenset({group}), str(error)) from None

    def _merged(self, works: list[_Work], new: _Work) -> list[_Work]:
        """Join the new segment with those that it overlaps or touches through shared comment lines."""
        for work in works:
            if work.segment.span.overlaps(new.segment.span):
                rest = [other for other in works if other is not work]
                run = self._layout.common([work.run, new.run])
                joined = _Work(run, self._layout.segment(run), work.groups | new.groups)
                return self._merged(rest, joined)
        return [*works, new]

    def _rewrite(self, work: _Work) -> bytes:
        span, edits = work.segment.span, self._edits_in(work)
        try:
            parsed = parse_segment(self._source.data[span.start : span.end], work.segment.indentation, self._newline, self._unit)
            module = parsed.module.visit(SegmentTransformer(parsed, span.start, self._unit, edits))
            assert isinstance(module, cst.Module)
            return print_segment(parsed, module)
        except (Refusal, cst.CSTValidationError, cst.ParserSyntaxError) as error:
            raise _Failure(work.groups, str(error)) from None
        except RecursionError:
            raise _Failure(work.groups, "the code around it is nested too deeply") from None

    def _edits_in(self, work: _Work) -> list[Edit]:
        edits = [edit for i in sorted(work.groups) for edit in self._groups[i] if not isinstance(edit, NeedImport)]
        return [edit for edit in edits if all(work.segment.span.contains(span) for span in targets(edit))]

    def _imports(self) -> dict[int, bytes]:
        lines: dict[int, bytes] = {}
        for group in self._groups.values():
            wanted = [edit.module for edit in group if isinstance(edit, NeedImport)]
            places = [span.start for edit in group for span in targets(edit)]
            before = self._source.position(min(places)).line if places else 1
            for module in wanted:
                if not is_imported(self._tree, module, before):
                    offset, line = import_line(self._source, self._tree, module, before)
                    lines[offset] = line
        return lines
