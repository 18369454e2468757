"""The traces that a recorded command has left, one for each of its processes, as values. Knows nothing of torch."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Place(NamedTuple):
    """Where something happens: a line of a function in a file of the project."""

    file: str
    function: str
    line: int

    @property
    def text(self) -> str:
        """The place as people read it."""
        return f"{self.file}:{self.line}" if self.file else "(no file of the project)"


class Row(NamedTuple):
    """One event of a series."""

    place: Place
    label: str
    number: int
    """The number of the event in its series, from 1."""
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Process:
    """What one process did."""

    name: str
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """By kind of event: backward, loss, step, save, load, raised."""
    totals: Mapping[str, Any] = field(default_factory=dict)
    """Counts at the end: forwards, graphs, backwards, steps, warnings, reached."""
    memory: int = 0
    """The most bytes that it held; 0 where that isn't known."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Where the recorder itself failed."""
    ended: bool = False
    """Whether the process came to its end; otherwise it was killed, and its last events may be missing."""


def read_traces(folder: str) -> tuple[Process, ...]:
    """All processes that have left a trace in a folder, the first that did anything with torch first."""
    raw = [_read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".jsonl")]
    seen: Counter[str] = Counter()
    return tuple(_process(events, seen) for events in raw if _did_something(events))


def _read(path: str) -> list[tuple[str, dict[str, Any]]]:
    events = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                kind, values = json.loads(line)
            except ValueError:  # the last line of a process that was killed
                continue
            events.append((kind, values))
    return events


def _did_something(events: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether a process used torch, or reached the edited lines: helpers that only import it would fill the report."""
    for kind, values in events:
        if kind == "totals" and (any(values.get(name) for name in ("forwards", "backwards", "steps", "warnings")) or _reached(values)):
            return True
        if kind not in {"process", "totals", "end"}:
            return True
    return False


def _reached(totals: Mapping[str, Any]) -> bool:
    reached = totals.get("reached") or {}
    return bool(reached.get("lines") or reached.get("raised"))


def _process(events: Sequence[tuple[str, dict[str, Any]]], seen: Counter[str]) -> Process:
    """Processes of one name are told apart by the order in which they began."""
    last = dict(events)
    head = last.get("process", {})
    name = " ".join([head.get("label", "main"), *map(os.path.basename, head.get("program", ()))])
    seen[name] += 1
    numbered = name if seen[name] == 1 else f"{name} ({seen[name]})"
    end = last.get("end", {})
    return Process(numbered, _rows(events), last.get("totals", {}), end.get("memory", 0), end.get("errors", {}), "end" in last)


def _rows(events: Sequence[tuple[str, dict[str, Any]]]) -> Mapping[str, Sequence[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for kind, values in events:
        if "place" in values:
            rest = {name: value for name, value in values.items() if name not in {"place", "label", "number"}}
            rows[kind].append(Row(Place(*values["place"]), values["label"], values.get("number", 1), rest))
    return rows


def forwards(process: Process) -> Iterator[tuple[Place, tuple[str, ...], str, bool, bool, int]]:
    """Place, the functions that run, module, whether it is in train mode, whether gradients are on, and how often."""
    for file, function, line, within, module, training, gradients, count in process.totals.get("forwards", ()):
        yield Place(file, function, line), tuple(within), module, training, gradients, count
