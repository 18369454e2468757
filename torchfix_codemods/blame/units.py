"""What can be applied or left out for itself: the fixes of a rule at one place, with their partners in other files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..engine import Group
from ..source import Position, Source
from ..workspace.tasks import Rewrote

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from ..workspace.run import Failure

Fix = tuple[str, Group]
"""The path of a file, and what a fix in it is known by."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Fixes that are applied together or not at all."""

    rule: str
    fixes: tuple[Fix, ...]
    places: tuple[tuple[str, Position], ...]
    """Where the fixes are in the original files."""
    message: str
    turn: int
    """The pass that applied the first of them: what they build on was applied before."""


def units(results: Iterable[Rewrote | Failure]) -> list[Unit]:
    """The units of what was applied, in the order of the files."""
    found: dict[Hashable, Unit] = {}
    known: dict[Fix, Hashable] = {}
    for result in results:
        if not isinstance(result, Rewrote) or not result.fixed:
            continue
        source = Source.decode(result.path, result.before)
        for finding, applied in zip(result.fixed, result.applied, strict=True):
            fix = (result.path, applied.group)
            key = known.setdefault(fix, finding.partners.key if finding.partners else fix)
            place = (result.path, source.position(applied.group.offset))
            found[key] = _joined(found.get(key), Unit(finding.rule, (fix,), (place,), finding.message, applied.turn))
    return list(found.values())


def _joined(first: Unit | None, second: Unit) -> Unit:
    if first is None:
        return second
    fixes = tuple(dict.fromkeys(first.fixes + second.fixes))
    places = tuple(dict.fromkeys(first.places + second.places))
    return Unit(first.rule, fixes, places, first.message, min(first.turn, second.turn))


def grouped(units: Sequence[Unit], order: Mapping[str, int]) -> dict[Hashable, list[Unit]]:
    """Units by pass and rule, in the order in which they are applied: what a unit builds on comes before it."""
    ordered = sorted(units, key=lambda unit: (unit.turn, order[unit.rule]))
    groups: dict[Hashable, list[Unit]] = {}
    for unit in ordered:
        groups.setdefault((unit.turn, unit.rule), []).append(unit)
    return groups
