"""In what two runs differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..effects import Aspect, Relation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .facts import Fact, Facts, Key
    from .trace import Place

_COSTS = {Aspect.GRAPH: 4096, Aspect.NODES: 50}
"""Sizes, and by how much (beside a tenth) one may grow without being told."""
_MODULE_ASPECTS = frozenset({Aspect.MODE, Aspect.GRADIENTS, Aspect.FORWARDS})


@dataclass(frozen=True)
class Change:
    """One fact that is not the same in both runs."""

    key: Key
    relation: Relation
    to: str
    """What it becomes, where the relation says so."""
    before: str
    after: str
    place: Place
    """Where the code of the first run does this; that of the second, where the first doesn't."""
    within: frozenset[str]
    is_new: bool = False
    """Whether the first run has nothing of this."""
    is_gone: bool = False
    """Whether the second run has nothing of this."""


def changes(before: Facts, after: Facts) -> list[Change]:
    """The differences; of a model and its parts that change alike, the model stands for all."""
    keys = [*before, *(key for key in after if key not in before)]
    found = [change for key in keys for change in _difference(key, before.get(key), after.get(key))]
    models = {(c.key[:4], c.key.label, c.relation, c.to) for c in found}
    return [c for c in found if not (c.key.aspect in _MODULE_ASPECTS and (c.key[:4], _model(c.key.label), c.relation, c.to) in models)]


def _model(label: str) -> str:
    """The model that a part belongs to; nothing for a model itself."""
    path = label.partition(":")[0]
    return path.partition(".")[0] if "." in path else ""


def _difference(key: Key, first: Fact | None, second: Fact | None) -> Iterator[Change]:
    compare = _COMPARED.get(key.aspect, _compare_counts)
    empty = _EMPTY.get(key.aspect, 0)
    old, new = (fact.value if fact else empty for fact in (first, second))
    result = None if old == new else compare(key, old, new)
    if result is not None:
        relation, to, before, after = result
        fact = first or second
        assert fact is not None
        within = frozenset((first.within if first else set()) | (second.within if second else set()))
        yield Change(key, relation, to, before, after, fact.place, within, first is None, second is None)


_Result = tuple[Relation, str, str, str]


def _compare_counts(_: Key, old: int, new: int) -> _Result | None:
    return (Relation.LESS if new < old else Relation.MORE), "", str(old), str(new)


def _compare_sizes(key: Key, old: int, new: int) -> _Result | None:
    if old < new <= old * 1.1 + _COSTS[key.aspect]:
        return None
    return _compare_counts(key, old, new)


def _compare_states(_: Key, old: Mapping[str, int], new: Mapping[str, int]) -> _Result | None:
    """Mode, or gradient mode: only the shares are compared, since the number of forwards is an aspect of its own."""
    if not old or not new:
        return None
    shares = {state: new.get(state, 0) / sum(new.values()) - old.get(state, 0) / sum(old.values()) for state in {*old, *new}}
    to = max(shares, key=lambda state: (shares[state], state))
    return None if abs(shares[to]) < 1e-9 else (Relation.BECOMES, to, _states(old), _states(new))


def _states(table: Mapping[str, int]) -> str:
    return ", ".join(f"{state} ×{count}" for state, count in sorted(table.items()) if count)


def _compare_series(_: Key, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> _Result | None:
    """Event by event, as far as both go: how many there are is an aspect of its own."""
    for number in (number for number in old if number in new):
        if old[number] != new[number] and not _both_nan(old[number], new[number]):
            return Relation.CHANGES, "", f"{_short(old[number])} ({_event(number)})", _short(new[number])
    return None


def _event(number: int | str) -> str:
    return f"event {number}" if isinstance(number, int) else number


def _both_nan(first: Any, second: Any) -> bool:
    return bool(first != first and second != second)  # noqa: PLR0124  # only NaN differs from itself


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _compare_texts(_: Key, old: list[str], new: list[str]) -> _Result | None:
    """Texts in order, without repetitions: how often something is saved may depend on the values."""
    return Relation.CHANGES, "", _listed(old), _listed(new)


def _compare_lines(_: Key, old: list[str], new: list[str]) -> _Result | None:
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    return (Relation.CHANGES, "", _listed(list(gone)), _listed(list(come))) if gone or come else None


def _listed(texts: list[str]) -> str:
    counts = Counter(texts)
    shown = [f"{text} ×{count}" if count > 1 else text for text, count in list(counts.items())[:3]]
    return "; ".join(shown + ["…"] * (len(counts) > 3)) or "nothing"


_COMPARED: Mapping[Aspect, Callable[[Key, Any, Any], _Result | None]] = {
    Aspect.MODE: _compare_states,
    Aspect.GRADIENTS: _compare_states,
    Aspect.VALUES: _compare_series,
    Aspect.GRAPH: _compare_sizes,
    Aspect.NODES: _compare_sizes,
    Aspect.SAVES: _compare_texts,
    Aspect.LOADS: _compare_texts,
    Aspect.OUTCOME: _compare_texts,
    Aspect.OUTPUT: _compare_lines,
}
_EMPTY: Mapping[Aspect, Any] = {
    **{aspect: {} for aspect in (Aspect.MODE, Aspect.GRADIENTS, Aspect.VALUES)},
    **{aspect: [] for aspect in (Aspect.SAVES, Aspect.LOADS, Aspect.OUTCOME, Aspect.OUTPUT)},
}
