"""The behaviour report for people, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table import print_table
from .text import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sandbox import Outcome
    from ..verify.judgement import Judged
    from ..verify.report import Cost, Promise
    from ..verify.script import Comparison

_WIDTH = 60
_PLACES = 3


def print_behaviour(comparison: Comparison, promises: Sequence[Promise], costs: Sequence[Cost]) -> None:
    """Print what was promised, what was not, and what both sides took."""
    rows = [
        (row.rule, _places(row.places), row.promise, _short(row.subject), _short(row.before), _short(row.after), row.verdict)
        for row in promises
    ]
    if rows:
        print_table(("rule", "fixes", "promised", "seen of", "before", "after", "verdict"), rows, "What the rules have promised")
        print()
    _print_changes(comparison)
    table = [(cost.name, amount(cost.before, cost.unit), amount(cost.after, cost.unit)) for cost in costs]
    print_table(("cost", "before", "after"), table, "What it took")
    print()
    print(summary(comparison))


def _print_changes(comparison: Comparison) -> None:
    columns = ("verdict", "place", "changed", "seen of", "before", "after", "because")
    found = sorted([*others(comparison), *comparison.regressions], key=lambda judged: judged.kind.value != "regression")
    if found:
        print_table(columns, [_row(judged) for judged in found], "What else has changed")
        print()


def others(comparison: Comparison) -> list[Judged]:
    """What has changed without being promised, and is no regression."""
    return [judged for judged in comparison.judged if judged.kind.value in {"follows", "better"}]


def _row(judged: Judged) -> tuple[str, ...]:
    change = judged.change
    cells = (place_of(judged), change.key.aspect.value, change.key.label, change.before, change.after, because(judged))
    return (judged.kind.value.upper() if judged.kind.value == "regression" else judged.kind.value, *map(_short, cells))


def place_of(judged: Judged) -> str:
    """File, line and function of a change."""
    place = judged.change.place
    line = f":{place.line}" if place.line else ""
    return " ".join(filter(None, (f"{place.file}{line}" if place.file else "", f"in {place.function}" if place.function else "")))


def because(judged: Judged) -> str:
    """Why a change is no regression, or which fixes are near one."""
    if judged.kind.value == "regression":
        return f"no rule promises it; nearest: {', '.join(judged.rules)}" if judged.rules else "no rule promises it"
    return judged.reason


def summary(comparison: Comparison) -> str:
    """What to know before all else, in a few sentences."""
    reached = sum(fix.reached is True for fix in comparison.fixes)
    found = len(comparison.regressions)
    verdict = count(found, "regression") if found else "no regression"
    before, after = comparison.before.outcome.reason, comparison.after.outcome.reason
    lines = [f"{count(len(comparison.fixes), 'fix')}, {reached} of them run by `{comparison.command}`; {verdict}."]
    lines += [f"Before: {before}, after: {after}. Recording took {comparison.slowdown:.2f} times as long as running without it."]
    if not comparison.before.outcome.passed:
        lines.append(f"The command fails before the fixes{_last_line(comparison.before.outcome)}: {_how_far(comparison)}")
    if comparison.varying:
        lines.append(f"Not judged, since it differs from run to run: {'; '.join(comparison.varying[:5])}.")
    errors = {text for run in (comparison.before, comparison.after) for process in run.processes for text in process.errors}
    lines += [f"Not recorded: {text}." for text in sorted(errors)]
    return "\n".join(lines)


def _how_far(comparison: Comparison) -> str:
    """What a command that fails is compared with."""
    base = comparison.base
    if not base.rules:
        return "both sides are compared as far as it gets."
    further = "" if base.run.outcome.passed else ", as far as it gets then"
    return f"it goes on with those of {', '.join(sorted(base.rules))} alone, and all others are compared with that{further}."


def _last_line(outcome: Outcome) -> str:
    """What the command has said last, in brackets: mostly why it failed."""
    said = outcome.stderr.end(1).strip()
    return f" ({_short(said)})" if said else ""


def amount(value: float, unit: str) -> str:
    """A number with its unit, as people write it."""
    if unit == "bytes":
        return f"{value / 1e6:,.1f} MB"
    return f"{value:.2f} s" if unit == "s" else f"{value:,.0f}"


def _places(places: Sequence[str]) -> str:
    more = f" and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
    return ", ".join(places[:_PLACES]) + more


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
