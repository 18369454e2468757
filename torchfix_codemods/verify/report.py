"""The behaviour report as values: what each rule has promised, what nobody has, what it costs, and curves to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..effects import Aspect, Effect, Relation
from ..rule import Safety
from .judgement import Kind, explains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .judgement import Applied, Judged
    from .script import Comparison, Run

SHOWN, NOT_SHOWN, NOT_REACHED, UNKNOWN = "shown", "not shown", "not reached", "can't tell"
HOLDS, BROKEN = "holds", "broken"


@dataclass(frozen=True)
class Promise:
    """One thing that a rule has promised, and what the traces say of it."""

    rule: str
    places: tuple[str, ...]
    """The fixes of the rule, by file and line of the original."""
    promise: str
    subject: str
    """What it was seen of."""
    before: str
    after: str
    verdict: str


@dataclass(frozen=True)
class Curve:
    """A series of numbers to draw, of one run."""

    title: str
    name: str
    side: str
    x: tuple[int, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Cost:
    """What the command took, before and after."""

    name: str
    before: float
    after: float
    unit: str


def promises(comparison: Comparison) -> list[Promise]:
    """A row for each effect of each rule that was seen or has to be, and one for what no effect is about."""
    rules = dict.fromkeys(fix.rule for fix in comparison.fixes)
    return [row for rule in rules for row in _of_rule([fix for fix in comparison.fixes if fix.rule == rule], comparison)]


def _of_rule(fixes: Sequence[Applied], comparison: Comparison) -> Iterator[Promise]:
    rule, places = fixes[0].rule, tuple(dict.fromkeys(fix.place for fix in fixes))
    for effect in fixes[0].effects:
        shown = [j for j in comparison.judged if j.kind is Kind.PROMISED and rule in j.rules and explains(effect, j.change)]
        for judged in shown[:3]:
            change = judged.change
            # What a program that breaks off does less of says nothing.
            verdict = UNKNOWN if comparison.fails_newly and effect.relation is Relation.LESS else SHOWN
            yield Promise(rule, places, text_of(effect), _subject(judged), change.before, change.after, verdict)
        if effect.shows and not shown:
            yield Promise(rule, places, text_of(effect), "", "", "", _absence(fixes))
    yield _rest(rule, places, fixes, comparison)


def _rest(rule: str, places: tuple[str, ...], fixes: Sequence[Applied], comparison: Comparison) -> Promise:
    """What holds for everything else: a safe fix leaves all values as they are."""
    reached = any(fix.reached is not False for fix in fixes)
    if all(fix.safety is Safety.SAFE for fix in fixes):
        judged = comparison.judged if comparison.safe_judged is None else comparison.safe_judged
        suspects = [suspect for j in judged if j.kind is Kind.REGRESSION for suspect in j.rules]
        blamed = any(suspect.startswith(f"{rule} (") for suspect in suspects)
        verdict = NOT_REACHED if not reached else BROKEN if blamed else UNKNOWN if suspects else HOLDS
        return Promise(rule, places, "everything else the same", "", "", "", verdict)
    values = [j for j in comparison.judged if j.change.key.aspect is Aspect.VALUES and j.kind is Kind.PROMISED]
    first = values[0].change if values else None
    before, after = (first.before, first.after) if first else ("", "")
    subject = _subject(values[0]) if values else ""
    verdict = NOT_REACHED if not reached else "changed" if first else "the same"
    return Promise(rule, places, "values may change", subject, before, after, verdict)


def _absence(fixes: Sequence[Applied]) -> str:
    reached = [fix.reached for fix in fixes]
    return NOT_SHOWN if any(reached) else UNKNOWN if None in reached else NOT_REACHED


def text_of(effect: Effect) -> str:
    """An effect in words."""
    if effect.relation is Relation.BECOMES:
        return f"{effect.aspect.value}: {effect.to}"
    if effect.modules:
        return f"{effect.aspect.value} of {', '.join(effect.modules)}: {effect.relation.value}"
    return f"{effect.aspect.value}: {effect.relation.value}"


def _subject(judged: Judged) -> str:
    key = judged.change.key
    return " ".join(filter(None, (key.label, f"in {key.function}" if key.function else "")))


def costs(comparison: Comparison) -> list[Cost]:
    """Time and memory of both sides, as far as both go; they vary from run to run, and are told without a verdict."""
    rows = [Cost(name, float(measure(comparison.base.run)), float(measure(comparison.after)), unit) for name, unit, measure in _COSTS]
    return [row for row in rows if row.before or row.after]


def _memory(run: Run) -> int:
    """Of the process that held the most."""
    return max((process.memory for process in run.processes), default=0)


def _gpu_memory(run: Run) -> int:
    return max((row.values.get("cuda") or 0 for process in run.processes for row in process.rows.get("step", ())), default=0)


def _graphs(run: Run, name: str) -> int:
    return sum((process.totals.get("graphs") or {}).get(name, 0) for process in run.processes)


_COSTS: tuple[tuple[str, str, Callable[[Run], float]], ...] = (
    ("wall time, recorded", "s", lambda run: run.outcome.seconds),
    ("peak process memory", "bytes", _memory),
    ("peak GPU memory", "bytes", _gpu_memory),
    ("graph nodes alive at most", "", lambda run: _graphs(run, "most")),
    ("graph nodes alive at the end", "", lambda run: _graphs(run, "alive")),
)
_DRAWN = (
    ("loss", "loss", "value"),
    ("loss", "backward", "value"),
    ("gradient norm", "step", "norm"),
    ("process memory (bytes)", "step", "memory"),
    ("GPU memory (bytes)", "step", "cuda"),
    ("graph nodes alive", "step", "nodes"),
)
"""Title of the plot, kind of event, and what is drawn of it."""


def curves(comparison: Comparison) -> list[Curve]:
    """The curves of both sides, as far as both go, in the order of the plots."""
    sides = (("before", comparison.base.run), ("after", comparison.after))
    return [curve for title, kind, name in _DRAWN for side, run in sides for curve in _curves(title, kind, name, side, run)]


def _curves(title: str, kind: str, name: str, side: str, run: Run) -> Iterator[Curve]:
    for process in run.processes:
        series: dict[str, list[tuple[int, float]]] = {}
        for row in process.rows.get(kind, ()):
            value = row.values.get(name)
            if isinstance(value, (int, float)):
                label = " ".join(filter(None, (row.label, row.place.function)))
                series.setdefault(label, []).append((row.number, float(value)))
        for label, points in series.items():
            if any(y for _, y in points):
                where = f"{label} ({process.name})" if len(run.processes) > 1 else label
                yield Curve(title, where, side, tuple(x for x, _ in points), tuple(y for _, y in points))
