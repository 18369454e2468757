"""Where a place in a changed text was before the changes."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_TOKEN = re.compile(rb"\w+|[^\w\s]")
_MOST_PAIRS = 4_000_000
"""Pairs of tokens up to which a changed region is compared token by token."""


class History:
    """The changes of a text, in order."""

    def __init__(self) -> None:
        self._changes: list[_Change] = []

    def add(self, before: bytes, after: bytes) -> None:
        """The text was changed."""
        if before != after:
            self._changes.append(_Change(before, after))

    def original(self, offset: int) -> int:
        """The byte offset in the first text that became this one; for new text, the one where it was put in."""
        for change in reversed(self._changes):
            offset = change.before(offset)
        return offset


class _Region(NamedTuple):
    """Parts of two sequences, `old[start:end]` and `new[new_start:new_end]`, and whether they are equal."""

    equal: bool
    start: int
    end: int
    new_start: int
    new_end: int


class _Change:
    """One change. Lines are compared without their indentation, changed regions token by token."""

    def __init__(self, before: bytes, after: bytes) -> None:
        self._old, self._new = _LINE.findall(before), _LINE.findall(after)
        self._old_starts = [0, *accumulate(map(len, self._old))]
        self._new_starts = [0, *accumulate(map(len, self._new))]
        self._tokens: dict[_Region, _Tokens] = {}

    @cached_property
    def _regions(self) -> list[_Region]:
        return _compared([line.strip() for line in self._old], [line.strip() for line in self._new])

    def before(self, offset: int) -> int:
        """The offset in the old text for one in the new text."""
        line = bisect_right(self._new_starts, offset) - 1
        region = next((region for region in self._regions if region.new_start <= line < region.new_end), None)
        if region is None:
            return self._old_starts[-1]
        if region.equal:
            there = region.start + line - region.new_start
            column = offset - self._new_starts[line] - _indentation(self._new[line])
            return self._old_starts[there] + max(0, _indentation(self._old[there]) + column)
        if region not in self._tokens:
            self._tokens[region] = _Tokens(
                b"".join(self._old[region.start : region.end]), b"".join(self._new[region.new_start : region.new_end])
            )
        return self._old_starts[region.start] + self._tokens[region].before(offset - self._new_starts[region.new_start])


class _Tokens:
    """A changed region, token by token; blanks don't count."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self._old_starts = [match.start() for match in _TOKEN.finditer(old)]
        self._new_starts = [match.start() for match in _TOKEN.finditer(new)]
        self._size = len(old)
        pairs = len(self._old_starts) * len(self._new_starts)
        self._regions = _compared(_TOKEN.findall(old), _TOKEN.findall(new)) if pairs <= _MOST_PAIRS else []

    def before(self, offset: int) -> int:
        token = max(0, bisect_right(self._new_starts, offset) - 1)
        for region in self._regions:
            if region.new_start <= token < region.new_end:
                there = region.start + token - region.new_start if region.equal else region.start
                start = self._old_starts[there] if there < len(self._old_starts) else self._size
                return start + (offset - self._new_starts[token] if region.equal else 0)
        return 0


def _compared(old: Sequence[bytes], new: Sequence[bytes]) -> list[_Region]:
    """The regions of two sequences in order; what they begin and end with alike isn't compared, since that takes long."""
    from difflib import SequenceMatcher

    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    matcher = SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False)
    inner = [_Region(tag == "equal", *(start + place for place in places)) for tag, *places in matcher.get_opcodes()]
    return [_Region(True, 0, start, 0, start), *inner, _Region(True, len(old) - end, len(old), len(new) - end, len(new))]


def _alike(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """How many elements the two begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _indentation(line: bytes) -> int:
    return len(line) - len(line.lstrip())
