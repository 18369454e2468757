"""Keep the largest set of fixes under which a command still passes, and say what is wrong with the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..workspace.run import Failure
from .rewrites import changes
from .search import largest
from .units import Unit, grouped, units

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from ..workspace.tasks import Rewrote
    from .budget import Budget
    from .rewrites import Rewrites
    from .trials import Trials

_ROUNDS = 3
"""How often fixes are looked for that are possible only without those that were left out."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A unit that makes the command fail."""

    unit: Unit
    reason: str
    log: str
    """The end of what the command printed, with this unit beside others with which it passes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the runs have shown."""

    results: tuple[Rewrote | Failure, ...]
    """The files with the fixes that are kept, exactly as the command has passed with them."""
    kept: tuple[Unit, ...]
    guilty: tuple[Blame, ...]
    untried: tuple[Unit, ...]
    """Left out since no runs were left to find out."""
    dependent: tuple[Unit, ...]
    """Left out since they build on others that were."""
    runs: int
    flaky: tuple[str, ...]
    """On what the command both passed and failed."""


def judged(results: Iterable[Rewrote | Failure], rewrites: Rewrites, trials: Trials, budget: Budget, order: Mapping[str, int]) -> Verdict:
    """Search among the fixes of some results; the command has passed without any. `order` is the place of each rule."""
    return _Judging(rewrites, trials, budget, order).verdict(units(results))


class _Judging:
    """What is known of the fixes so far."""

    def __init__(self, rewrites: Rewrites, trials: Trials, budget: Budget, order: Mapping[str, int]) -> None:
        self._rewrites, self._trials, self._budget, self._order = rewrites, trials, budget, order
        self._known: list[Unit] = []
        self._failures: dict[Hashable, tuple[str, str]] = {}
        """By outcome, the reason and the log."""
        self._kept: frozenset[Unit] = frozenset()
        self._guilty: dict[Unit, frozenset[Unit]] = {}
        self._untried: list[Unit] = []

    def verdict(self, new: list[Unit]) -> Verdict:
        for _ in range(_ROUNDS):
            self._search(new)
            new = self._newcomers()
            if not new or self._untried:
                break
        results = self._rewrites.only(self._kept)
        applied = {fix for unit in units(results) for fix in unit.fixes}
        kept = [unit for unit in self._known if unit in self._kept]
        return Verdict(
            tuple(results),
            tuple(unit for unit in kept if applied.issuperset(unit.fixes)),
            tuple(self._blame(unit, items) for unit, items in self._guilty.items()),
            tuple(self._untried),
            tuple(unit for unit in kept if not applied.issuperset(unit.fixes)),
            self._budget.spent,
            tuple(self._trials.flaky),
        )

    def _search(self, new: list[Unit]) -> None:
        self._known += new
        found = largest(grouped(new, self._order), self._passes, self._budget, self._kept, self._outcome)
        self._kept = found.kept
        self._guilty |= found.guilty
        self._untried += found.untried

    def _newcomers(self) -> list[Unit]:
        """Fixes that are possible only without those that were left out."""
        left_out = [*self._guilty, *self._untried]
        known = {fix for unit in self._known for fix in unit.fixes}
        results = self._rewrites.without(left_out) if left_out else []
        return [unit for unit in units(results) if known.isdisjoint(unit.fixes)]

    def _outcome(self, items: frozenset[Unit]) -> Hashable:
        return frozenset(changes(self._rewrites.only(items)).items())

    def _passes(self, items: frozenset[Unit]) -> bool:
        results = self._rewrites.only(items)
        failures = [result for result in results if isinstance(result, Failure)]
        if failures:
            self._failures[self._outcome(items)] = (failures[0].reason, "")
            return False
        passed, outcome = self._trials.judge(changes(results), f"{len(items)} of {len(self._known)} fixes")
        if not passed:
            self._failures[self._outcome(items)] = (outcome.reason, outcome.log())
        return passed

    def _blame(self, unit: Unit, items: frozenset[Unit]) -> Blame:
        reason, log = self._failures[self._outcome(items)]
        return Blame(unit, reason, log)
