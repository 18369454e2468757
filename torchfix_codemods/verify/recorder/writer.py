"""The trace of one process: a file of JSON lines, written as the program goes, so that a killed process leaves what it did."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

PENDING = 256
"""Rows that wait to be written: numbers on a GPU are read late, so that it need not be waited for at each step."""
FULL = 256
"""Events of a series that are all written; of later ones, as many again for each doubling."""

Function = TypeVar("Function", bound="Callable[..., Any]")


class Writer:
    """Collects rows and totals, and writes them to a file of its own in the folder of traces."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._parts: list[tuple[str, Callable[[], object], Callable[[], None]]] = []
        self._depth = 0
        self._clear()
        os.register_at_fork(after_in_child=self._forked)

    def _clear(self) -> None:
        self._rows: list[tuple[str, dict[str, Any]]] = []
        self._counts: dict[object, int] = {}
        self._path = os.path.join(self._folder, f"{time.time_ns()}-{os.getpid()}.jsonl")
        self._started = self._ended = False
        self._errors: dict[str, int] = {}

    def _forked(self) -> None:
        """A forked child starts anew: what its parent did is in the parent's trace."""
        self._depth += 1
        self._clear()
        for _, _, reset in self._parts:
            reset()

    def add_part(self, name: str, totals: Callable[[], object], reset: Callable[[], None]) -> None:
        """A part with totals of its own, which are written now and then, the last ones counting."""
        self._parts.append((name, totals, reset))

    def number(self, series: object) -> tuple[int, bool]:
        """The number of this event in its series, from 1, and whether it is one of those that are written."""
        count = self._counts[series] = self._counts.get(series, 0) + 1
        return count, count <= FULL or count % (1 << (count.bit_length() - FULL.bit_length())) == 0

    def row(self, event: str, **values: Any) -> None:
        """Note an event; tensors of one element are read when it is written."""
        self._rows.append((event, values))
        if len(self._rows) >= PENDING:
            self.flush()

    def failed(self, function: str, error: Exception) -> None:
        """Note an error of the recorder's own."""
        text = f"{function}: {type(error).__name__}: {error}"[:200]
        self._errors[text] = self._errors.get(text, 0) + 1

    def guarded(self, function: Function) -> Function:
        """The function, with its own errors noted instead of raised: the program must not suffer from its recorder."""

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            try:
                return function(*arguments, **keywords)
            except Exception as error:  # noqa: BLE001  # the border
                self.failed(function.__qualname__, error)
                return None

        return call  # type: ignore[return-value]  # of the same signature

    def flush(self) -> None:
        """Write what is pending."""
        rows, self._rows = self._rows, []
        lines = [_line(kind, values) for kind, values in rows]
        lines += [_line("totals", {name: totals() for name, totals, _ in self._parts})]
        if not self._started:
            lines.insert(0, _line("process", {"label": process_label(self._depth), "program": sys.argv[:1]}))
            self._started = True
        with open(self._path, "a", encoding="utf-8") as file:
            file.write("".join(lines))

    def finish(self) -> None:
        """Write the end, once."""
        if self._ended:
            return
        self._ended = True
        try:
            self.row("end", errors=self._errors, memory=peak_memory())
            self.flush()
        except Exception as error:  # noqa: BLE001  # at the end of a program there is nobody left to tell
            sys.stderr.write(f"recorder: {error}\n")


def process_label(depth: int) -> str:
    """What a process is called, alike in every run: by its rank, its number among the children, or how often it was forked."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    name = multiprocessing.current_process().name if multiprocessing else "MainProcess"
    if name != "MainProcess":
        return name
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK")
    return ("child of " * depth) + (f"rank {rank}" if rank else "main")


def peak_memory() -> int:
    """The most bytes of memory that the process has held; 0 where the system doesn't tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def watch_end(writer: Writer) -> None:
    """See to it that the end is written: `multiprocessing` leaves its children without `atexit`, and clears what they inherit."""
    import atexit
    from multiprocessing import util

    atexit.register(writer.finish)
    _finish_ahead_of_exit(writer)
    util.Finalize(None, writer.finish, exitpriority=0)
    util.register_after_fork(writer, lambda writer: util.Finalize(None, writer.finish, exitpriority=0))


def _finish_ahead_of_exit(writer: Writer) -> None:
    """Stand in for `os._exit`, which ends a process without `atexit`."""
    leave = os._exit

    @functools.wraps(leave)
    def finish_and_leave(status: int) -> Any:
        writer.finish()
        leave(status)

    os._exit = finish_and_leave


def _line(kind: str, values: Mapping[str, Any]) -> str:
    return json.dumps([kind, {name: _plain(value) for name, value in values.items()}], default=str) + "\n"


def _plain(value: Any) -> Any:
    """A tensor as its number."""
    if not hasattr(value, "detach"):
        return value
    try:
        return value.item()
    except Exception:  # noqa: BLE001  # fake, distributed or freed: no number, then
        return None
