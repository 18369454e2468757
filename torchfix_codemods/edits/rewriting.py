"""The new text of a file for a fixed set of groups: segments are cut, rewritten and put back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from .claims import targets
from .imports import with_imports
from .kinds import DeleteStatement, NeedImport
from .parse import Refusal, parse_segment, print_segment
from .segments import Layout, NotFound, Segment, indentation_unit, newline_of, with_neighbour
from .syntax import NotPython, parsed
from .transform import SegmentTransformer

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection, Mapping, Sequence

    from ..source import Source
    from .kinds import Edit
    from .segments import Run


class Setback(Exception):
    """Groups that stood in the way: for good, with the reason, or only beside others in one pass."""

    def __init__(self, refused: Mapping[int, str], waiting: Collection[int] = ()) -> None:
        super().__init__(refused, waiting)
        self.refused, self.waiting = dict(refused), set(waiting)


@dataclass(frozen=True, slots=True)
class _Work:
    """One segment to rewrite, and the groups with edits in it."""

    run: Run
    segment: Segment
    groups: frozenset[int]


def rewritten(source: Source, tree: ast.Module, groups: Mapping[int, Sequence[Edit]]) -> bytes:
    """The new text with all groups applied; raises `Setback`."""
    try:
        source, tree, edits = with_imports(source, tree, groups)
    except (NotFound, NotPython) as error:
        raise Setback({i: str(error) for i, group in groups.items() if any(isinstance(e, NeedImport) for e in group)}) from None
    data = _Rewriting(source, tree, edits).run()
    try:
        parsed(data.decode())
    except NotPython as error:
        raise _blamed(groups, str(error)) from None
    return data


def _blamed(groups: Collection[int], reason: str) -> Setback:
    """Of several groups that fail only together, all but the first wait for the next pass."""
    first = min(groups)
    return Setback({first: reason}) if len(groups) == 1 else Setback({}, set(groups) - {first})


class _Rewriting:
    """One attempt at all segments."""

    def __init__(self, source: Source, tree: ast.Module, groups: Mapping[int, Sequence[Edit]]) -> None:
        self._source, self._groups = source, groups
        self._layout = Layout(source, tree)
        self._newline, self._unit = newline_of(source.data) or "\n", indentation_unit(source, tree)
        self._refused: dict[int, str] = {}
        self._waiting: set[int] = set()

    def run(self) -> bytes:
        """The text with every segment replaced; raises one `Setback` for all that failed."""
        patches = [(work.segment.span, self._settled(work)) for work in self._works()]
        if self._refused or self._waiting:
            raise Setback(self._refused, self._waiting)
        data = self._source.data
        for span, new in sorted(patches, reverse=True):
            data = data[: span.start] + new + data[span.end :]
        return data

    def _works(self) -> list[_Work]:
        works: list[_Work] = []
        for i, group in self._groups.items():
            for edit in group:
                try:
                    works = self._merged(works, self._work(i, edit))
                except NotFound as error:
                    self._refused[i] = str(error)
        return works

    def _work(self, group: int, edit: Edit) -> _Work:
        run = self._layout.common([self._layout.innermost(span) for span in targets(edit)])
        if isinstance(edit, DeleteStatement):
            run = with_neighbour(run)
        return _Work(run, self._layout.segment(run), frozenset({group}))

    def _merged(self, works: list[_Work], new: _Work) -> list[_Work]:
        """Join the new segment with those that it overlaps or touches through shared comment lines."""
        for work in works:
            if work.segment.span.overlaps(new.segment.span):
                rest = [other for other in works if other is not work]
                run = self._layout.common([work.run, new.run])
                joined = _Work(run, self._layout.segment(run), work.groups | new.groups)
                return self._merged(rest, joined)
        return [*works, new]

    def _settled(self, work: _Work) -> bytes:
        """The new bytes of a segment; what stands in their way is noted."""
        try:
            return self._attempt(work, work.groups)
        except Refusal as refusal:
            guilty = self._failing_alone(work) if len(work.groups) > 1 else dict.fromkeys(work.groups, str(refusal))
            setback = Setback(guilty) if guilty else _blamed(work.groups, str(refusal))
            self._refused |= setback.refused
            self._waiting |= setback.waiting
            return b""

    def _failing_alone(self, work: _Work) -> dict[int, str]:
        guilty = {}
        for i in sorted(work.groups):
            try:
                self._attempt(work, {i})
            except Refusal as refusal:
                guilty[i] = str(refusal)
        return guilty

    def _attempt(self, work: _Work, groups: Collection[int]) -> bytes:
        """The bytes of a segment with some of its groups applied; raises `Refusal`."""
        span = work.segment.span
        data = self._source.data[span.start : span.end]
        edits = [edit for i in sorted(groups) for edit in self._groups[i] if all(span.contains(t) for t in targets(edit))]
        try:
            segment = parse_segment(data, work.segment.indentation, newline_of(data) or self._newline, self._unit)
            module = segment.module.visit(SegmentTransformer(segment, span.start, self._unit, edits))
            assert isinstance(module, cst.Module)
            return print_segment(segment, module)
        except cst.CSTValidationError as error:
            raise Refusal(str(error)) from None
        except RecursionError:
            message = "the code around it is nested too deeply"
            raise Refusal(message) from None
