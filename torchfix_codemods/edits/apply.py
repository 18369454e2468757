"""Apply groups of edits to a file: one pass, each group whole or not at all, bytes elsewhere untouched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..source import Span
from .claims import clash, group_claims
from .rewriting import Setback, rewritten

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence

    from ..source import Source
    from .kinds import Edit


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


def apply_groups(source: Source, tree: ast.Module, groups: Sequence[Sequence[Edit]]) -> Applied:
    """Apply all groups that don't overlap an earlier one; nothing is raised for a group that can't be applied."""
    chosen, waiting = _choose(groups)
    refused: dict[int, str] = {}
    while True:
        try:
            data = rewritten(source, tree, {i: groups[i] for i in chosen})
        except Setback as setback:
            refused |= setback.refused
            waiting |= setback.waiting
            chosen = [i for i in chosen if i not in refused and i not in waiting]
        else:
            return Applied(data, tuple(chosen), tuple(sorted(waiting)), refused)


def _choose(groups: Sequence[Sequence[Edit]]) -> tuple[list[int], set[int]]:
    """The groups of this pass, and those that overlap one of them."""
    chosen, waiting, taken = list[int](), set[int](), list[Span]()
    for i, group in enumerate(groups):
        wanted = group_claims(group)
        if clash(taken, wanted):
            waiting.add(i)
        else:
            chosen.append(i)
            taken += wanted
    return chosen, waiting
