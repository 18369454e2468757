"""What a recorded run did, as facts that can be compared one by one with those of another run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..effects import Aspect
from .trace import Place, forwards

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .trace import Process, Row

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
"""Where an object lies in memory: of no meaning, and another in each run."""
_SERIES = {"backward": ("value",), "loss": ("value",), "step": ("norm", "digest", "random")}
"""The kinds of events whose values are compared."""
_NAMES = {"value": "loss", "norm": "gradient norm", "digest": "parameters", "random": "random numbers"}


class Key(NamedTuple):
    """What a fact is about."""

    aspect: Aspect
    process: str
    file: str
    function: str
    label: str


@dataclass
class Fact:
    """What was seen."""

    value: Any
    """A count, a table of counts by state, a series by number, or a list of texts."""
    place: Place
    within: set[str] = field(default_factory=set)
    """The functions that were running, as `file:function`."""


Facts = dict[Key, Fact]


def facts_of(processes: Iterable[Process], output: str, ending: str) -> Facts:
    """All that is compared of a run; `output` is what the command printed, `ending` how it failed, empty when it didn't."""
    facts: Facts = {}
    for process in processes:
        for part in (_modes, _counts, _graphs, _values, _files, _notices):
            for key, fact in part(process):
                facts[key] = fact
    if ending:
        facts[Key(Aspect.OUTCOME, "", "", "", "command")] = Fact([ending], Place("", "", 0))
    facts[Key(Aspect.OUTPUT, "", "", "", "text")] = Fact(_lines(output), Place("", "", 0))
    facts[Key(Aspect.VALUES, "", "", "", "printed numbers")] = Fact(_printed_numbers(output), Place("", "", 0))
    return facts


def _lines(output: str) -> list[str]:
    """The lines of a text without their numbers, which are values."""
    return [_NUMBER.sub("#", line).rstrip() for line in _printed(output)]


def _printed_numbers(output: str) -> dict[str, str]:
    """The numbers of each line, by its text and how often that was printed before: lines that come or go don't shift them."""
    seen: Counter[str] = Counter()
    numbers = {}
    for line in _printed(output):
        text = _NUMBER.sub("#", line).strip()
        seen[text] += 1
        numbers[f"{text}, time {seen[text]}"] = " ".join(_NUMBER.findall(line))
    return numbers


def _printed(output: str) -> list[str]:
    return [line for line in re.split(r"[\r\n]+", _ADDRESS.sub("0x…", output)) if line.strip()]


def _without_numbers(text: str) -> str:
    """A text without its numbers: times and counts would make another text of it in each run."""
    return _NUMBER.sub("#", _ADDRESS.sub("0x…", text))


def _modes(process: Process) -> Iterator[tuple[Key, Fact]]:
    """Mode, gradient mode and number of the forwards of each module in each function."""
    found: dict[Key, Fact] = {}
    for place, within, module, training, gradients, count in forwards(process):
        states = {
            Aspect.MODE: "train" if training else "eval",
            Aspect.GRADIENTS: "on" if gradients else "off",
            Aspect.FORWARDS: "",
        }
        for aspect, state in states.items():
            key = Key(aspect, process.name, place.file, place.function, module)
            fact = found.setdefault(key, Fact(defaultdict(int), place))
            fact.value[state] += count
            fact.within.update(within)
    for key, fact in found.items():
        yield key, Fact(fact.value[""] if key.aspect is Aspect.FORWARDS else dict(fact.value), fact.place, fact.within)


def _counts(process: Process) -> Iterator[tuple[Key, Fact]]:
    """Backward passes and steps by function, steps with stale gradients, and steps without any."""
    found: dict[Key, Fact] = {}
    for file, function, line, within, count in process.totals.get("backwards", ()):
        key = Key(Aspect.BACKWARDS, process.name, file, function, "")
        _add(found, key, count, Place(file, function, line), within)
    for file, function, line, within, label, count, stale in process.totals.get("steps", ()):
        for aspect, number in ((Aspect.STEPS, count), (Aspect.STALE, stale)):
            _add(found, Key(aspect, process.name, file, function, label), number, Place(file, function, line), within)
    for row in process.rows.get("step", ()):
        empty = row.values.get("none", 0) + (row.values.get("zero") or 0) >= row.values.get("parameters", 1)
        _add(found, Key(Aspect.EMPTY, process.name, row.place.file, row.place.function, row.label), int(empty), row.place, ())
    yield from found.items()


def _add(found: Facts, key: Key, count: int, place: Place, within: Iterable[str]) -> None:
    fact = found.setdefault(key, Fact(0, place))
    fact.value += count
    fact.within.update(within)


def _graphs(process: Process) -> Iterator[tuple[Key, Fact]]:
    """What the largest graph of each function holds, and how many nodes were alive at most."""
    graphs = process.totals.get("graphs") or {}
    found: dict[Key, Fact] = {}
    for file, function, line, within, label, _, saved in graphs.get("sizes", ()):
        fact = found.setdefault(Key(Aspect.GRAPH, process.name, file, function, label), Fact(0, Place(file, function, line)))
        fact.value = max(fact.value, saved)
        fact.within.update(within)
    yield from found.items()
    if "most" in graphs:
        yield Key(Aspect.NODES, process.name, "", "", "at most"), Fact(graphs["most"], Place("", "", 0))


def _values(process: Process) -> Iterator[tuple[Key, Fact]]:
    """Losses, gradient norms, parameters and random states, event by event."""
    found: dict[Key, Fact] = {}
    for kind, names in _SERIES.items():
        for row in process.rows.get(kind, ()):
            for name in names:
                label = " ".join(filter(None, (_NAMES[name], f"of {row.label}" if row.label else "")))
                key = Key(Aspect.VALUES, process.name, row.place.file, row.place.function, label)
                found.setdefault(key, Fact({}, row.place)).value[row.number] = row.values.get(name)
    yield from found.items()


def _files(process: Process) -> Iterator[tuple[Key, Fact]]:
    """What was saved and loaded in each function, in order."""
    found: dict[Key, Fact] = {}
    for kind, aspect in (("save", Aspect.SAVES), ("load", Aspect.LOADS)):
        for row in process.rows.get(kind, ()):
            key = Key(aspect, process.name, row.place.file, row.place.function, row.label)
            found.setdefault(key, Fact([], row.place)).value.append(_file_text(row))
            if "digest" in row.values:
                key = key._replace(aspect=Aspect.VALUES, label=f"contents of {row.label}")
                found.setdefault(key, Fact({}, row.place)).value[row.number] = row.values["digest"]
    yield from found.items()


def _file_text(row: Row) -> str:
    values: Mapping[str, Any] = row.values
    parts = [values["kind"]]
    parts += [f"{name}={values[name]}" for name in ("map_location", "weights_only") if name in values]
    parts += [_loads(values["loads"])] if values.get("loads") else []
    parts += [f"on {', '.join(values['devices'])}"] if set(values.get("devices", ())) - {"cpu"} else []
    return ", ".join(parts)


def _loads(result: str) -> str:
    return "loads with weights_only" if result == "yes" else f"with weights_only: {result}"


def _notices(process: Process) -> Iterator[tuple[Key, Fact]]:
    """Warnings and exceptions by function and type, the caught ones too, and what ended the process."""
    found: dict[Key, Fact] = {}
    for file, function, line, category, text, count in process.totals.get("warnings", ()):
        key = Key(Aspect.WARNINGS, process.name, file, function, f"{category}: {_without_numbers(text)}")
        _add(found, key, count, Place(file, function, line), (f"{file}:{function}",))
    for file, function, line, kind, _, count in (process.totals.get("reached") or {}).get("raised", ()):
        key = Key(Aspect.RAISED, process.name, file, function, kind)
        _add(found, key, count, Place(file, function, line), (f"{file}:{function}",))
    for row in process.rows.get("raised", ()):
        key = Key(Aspect.OUTCOME, process.name, "", "", "ends with")
        found[key] = Fact([_ending(row)], row.place, {f"{row.place.file}:{row.place.function}"})
    yield from found.items()


def _ending(row: Row) -> str:
    """The exception that ended the process, with its function: the same one elsewhere is another ending."""
    text = f"{row.label}: {_ADDRESS.sub('0x…', row.values['value'])}"
    return f"{text} (in {row.place.function})" if row.place.function else text
