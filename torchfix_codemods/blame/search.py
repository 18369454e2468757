"""The largest set of items under which a test passes: a pure algorithm over ids of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from .budget import Exhausted

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from .budget import Budget

Id = TypeVar("Id", bound="Hashable")


@dataclass(frozen=True, slots=True)
class Result(Generic[Id]):
    """What a search has found."""

    kept: frozenset[Id]
    """A set that passes."""
    guilty: Mapping[Id, frozenset[Id]]
    """Those that make a set fail that passes without them, in order, and that set with them."""
    untried: tuple[Id, ...]
    """Those that were left out without such a proof, since the budget was exhausted."""
    exhausted: bool


def largest(
    groups: Mapping[Hashable, Sequence[Id]],
    passes: Callable[[frozenset[Id]], bool],
    budget: Budget,
    base: frozenset[Id] = frozenset(),
    outcome: Callable[[frozenset[Id]], Hashable] = lambda items: items,
) -> Result[Id]:
    """Keep as many items as possible beside those of `base`, which pass.

    All at once first; then groups in their order, then the items of each group to blame. Each item that was left out is
    tried once more, so that no single one can be added; then it is tried whether fewer of the others would have to go to
    keep them all. Where items build on others, those come first.
    `passes` spends the budget itself, and may raise `Exhausted`; it is asked once for sets that have the same `outcome`.
    """
    search = _Search(passes, outcome, budget, base)
    items = [item for members in groups.values() for item in members]
    exhausted = False
    try:
        search.by_groups([list(members) for members in groups.values() if members])
        search.add_back([item for item in items if item not in search.kept])
        search.exchange(items)
    except Exhausted:
        exhausted = True
    left = [item for item in items if item not in search.kept]
    guilty = {item: search.guilty[item] for item in left if item in search.guilty}
    untried = tuple(item for item in left if item not in search.guilty)
    return Result(search.kept, guilty, untried, exhausted or bool(untried))


class _Search(Generic[Id]):
    """The set that is known to pass, as it grows."""

    def __init__(
        self, passes: Callable[[frozenset[Id]], bool], outcome: Callable[[frozenset[Id]], Hashable], budget: Budget, base: frozenset[Id]
    ) -> None:
        self._passes, self._outcome, self._budget = passes, outcome, budget
        self._known: dict[Hashable, bool] = {outcome(base): True}
        self._base = self.kept = base
        self.guilty: dict[Id, frozenset[Id]] = {}

    def by_groups(self, groups: list[list[Id]]) -> None:
        """Keep whole groups, then what can be kept of the others; each of those has its share of the budget."""
        blamed = self._grow(groups)
        for place, group in enumerate(blamed):
            share = self._budget.left // (len(blamed) - place)
            try:
                with self._budget.share(share):
                    self._grow([[item] for item in group])
            except Exhausted:
                continue

    def _grow(self, pending: list[list[Id]]) -> list[list[Id]]:
        """Add all units that can be added, in order; the others.

        The first that fails is found by bisection. After it, twice as many units as stood before it are tried at once:
        so many in a row cost few runs, and few in a long list cost a bisection each.
        """
        failed, step = list[list[Id]](), len(pending)
        while pending:
            size = min(step, len(pending))
            if self._adds(pending[:size]):
                pending, step = pending[size:], 2 * step
                continue
            first = self._first_failing(pending[:size])
            failed.append(pending[first])
            self._blame(pending[first])
            pending, step = pending[first + 1 :], 2 * (first + 1)
        return failed

    def _first_failing(self, units: list[list[Id]]) -> int:
        """The place of a unit with which the units before it fail, and without which they pass; all together fail."""
        good, bad = 0, len(units)
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._adds(units[good:middle]):
                good = middle
            else:
                bad = middle
        return good

    def add_back(self, left: list[Id]) -> None:
        """Try those that were left out once more, in ever smaller parts: some pass only with others that were added since."""
        size = max(1, len(left) // 2)
        while left:
            before = self.kept
            for start in range(0, len(left), size):
                part = left[start : start + size]
                if not self._adds([part]):
                    self._blame(part)
            left = [item for item in left if item not in self.kept]
            if size == 1 and self.kept == before:
                return
            size = max(1, size // 2)

    def exchange(self, items: list[Id]) -> None:
        """Where several were left out for the sake of one that fails with each of them, leave out the one."""
        left = [item for item in items if item not in self.kept]
        other = _Search(self._passes, self._outcome, self._budget, self._base)
        other._known = self._known
        if len(left) > 1 and other._adds([left]):
            other._grow([[item] for item in items if item in self.kept])
            if len(other.kept) > len(self.kept):
                self.kept, self.guilty = other.kept, other.guilty

    def _blame(self, unit: list[Id]) -> None:
        if len(unit) == 1:
            self.guilty[unit[0]] = self.kept.union(unit)

    def _adds(self, units: Iterable[list[Id]]) -> bool:
        """Keep units beside what is kept, if that passes."""
        wanted = self.kept.union(*units)
        key = self._outcome(wanted)
        if key not in self._known:
            self._known[key] = self._passes(wanted)
        if self._known[key]:
            self.kept = wanted
        return self._known[key]
