"""The page that says which contracts were executed, where, and when: `docs/verified.md`."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from ..measured import HOLDS
from .page import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..recorded import Executable, Execution

_HEAD = """\
# What was executed, where, and when

The cases of each rule are executed before and after the rewrite, and what is observed is compared with what their contracts
promise; the page of each rule shows it. This page says on which devices and versions of torch that was done. It is
written by `docs/generate.py` from `docs/verified.json`, where `verify --record` keeps the last run of each case.

| to execute | run |
|---|---|
| on the CPU, with the torch that is installed | `torchfix-codemods verify --device cpu --record docs/verified.json` |
| on a GPU | `torchfix-codemods verify --device cuda --record docs/verified.json` |
| with the oldest torch that is supported | `make verify-torch TORCH=2.4.1` |
| with the newest | `make verify-torch TORCH=2.14.1` |
| with any other Python that has torch and numpy | `torchfix-codemods verify --python PATH --record docs/verified.json` |

`make verify-torch` makes an environment for that torch, which takes several gigabytes. `verify --python` needs nothing
there but Python 3.10 or newer, torch and numpy. Then `python docs/generate.py` writes this page. A case that was edited
after its last run *changed since*; one whose contract says `torch = ">=2.6"` *needs* that version, and isn't executed with
others.
"""

_GPU = """
## On a GPU

Where there is none, the tests execute these cases on a CPU that stands in for it (`tests/catalogue/stand_in.py`). That
finds mistakes, but verifies nothing: only a run on a GPU is listed with a date.
"""


def verified(executions: Iterable[Execution], executables: Sequence[Executable]) -> str:
    """The page, from the record and what should be in it."""
    now = {(executable.device, executable.rule, executable.case): executable.digest for executable in executables}
    known = [execution for execution in executions if (execution.device, execution.rule, execution.case) in now]
    outcomes = [
        Outcome(execution, execution.verdict if execution.digest == now[_case(execution)] else f"changed since {execution.date}")
        for execution in sorted(known, key=_newest_torch_first)
    ]
    parts = [
        _HEAD,
        "## Runs\n",
        *table(
            ("device", "torch", "Python", "on", "cases", "promises kept", "broken", "need another torch", "changed since"), _runs(outcomes)
        ),
        _GPU,
        *table(("rule", "cases", "device", "torch", "on", "verdict"), _on_gpu(outcomes, executables)),
        "\n## On the CPU\n",
        *_on_cpu(outcomes, executables),
    ]
    return "\n".join(parts) + "\n"


class Outcome(NamedTuple):
    """An execution, and what is to be said of it now."""

    execution: Execution
    verdict: str

    @property
    def kind(self) -> str:
        """The first word of the verdict."""
        return self.verdict.partition(" ")[0]


def _case(entry: Execution | Executable) -> tuple[str, str, str]:
    return entry.device, entry.rule, entry.case


def _newest_torch_first(execution: Execution) -> tuple[object, ...]:
    numbers = [-int(part) for part in execution.torch.partition("+")[0].split(".") if part.isdigit()]
    return (numbers, execution.torch, execution.name, execution.rule, execution.case)


def _runs(outcomes: Iterable[Outcome]) -> Iterator[Sequence[str]]:
    """A row for each device and torch."""
    groups: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.execution.name, outcome.execution.torch, outcome.execution.python].append(outcome)
    for place, mine in groups.items():
        kinds = Counter(outcome.kind for outcome in mine)
        kept = sum(outcome.execution.promises for outcome in mine if outcome.verdict == HOLDS)
        dates = sorted({outcome.execution.date for outcome in mine})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        yield (*place, when, *map(str, (len(mine), kept, kinds["BREACH:"], kinds["needs"], kinds["changed"])))


def _on_gpu(outcomes: Iterable[Outcome], executables: Iterable[Executable]) -> Iterator[Sequence[str]]:
    """A row for the cases of a rule to which the same happened."""
    ran: dict[tuple[str, str, str], list[tuple[str, ...]]] = defaultdict(list)
    for execution, verdict in outcomes:
        ran[_case(execution)].append((execution.name, execution.torch, execution.date, verdict))
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for executable in executables:
        if executable.device == "cuda":
            for what in ran[_case(executable)] or [("", "", "", "no GPU has run this yet")]:
                groups[executable.rule, what].append(executable.case)
    for (rule, what), cases in sorted(groups.items()):
        yield (rule, ", ".join(cases), *what)


def _on_cpu(outcomes: Iterable[Outcome], executables: Iterable[Executable]) -> Iterator[str]:
    """A row for each rule, with a column for each torch."""
    ran = {(_case(outcome.execution), outcome.execution.torch): outcome for outcome in outcomes if outcome.execution.device == "cpu"}
    versions = list(dict.fromkeys(torch for _, torch in ran))
    rules: dict[str, list[Executable]] = defaultdict(list)
    for executable in executables:
        if executable.device == "cpu":
            rules[executable.rule].append(executable)
    rows = [
        [rule, str(len(mine)), *(_told([ran.get((_case(executable), torch)) for executable in mine]) for torch in versions)]
        for rule, mine in sorted(rules.items())
    ]
    return table(("rule", "cases", *(f"torch {torch}" for torch in versions)), rows)


def _told(outcomes: Sequence[Outcome | None]) -> str:
    """How many cases had which outcome; those that broke are named."""
    counts = Counter(
        "never run" if outcome is None else f"{outcome.execution.case}: {outcome.verdict}" if outcome.kind == "BREACH:" else outcome.verdict
        for outcome in outcomes
    )
    return "; ".join(f"{number} {'held' if verdict == HOLDS else verdict}" for verdict, number in counts.items())
