"""Which of the edited lines are run, and which exceptions are raised in the user's code, also those that it catches."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable

from .places import Place, function_name, user_file

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .writer import Writer

CALLS = 1_000_000
"""Calls of Python functions that are traced: tracing makes all Python code slower, and has to end."""
_ORDINARY = (StopIteration, StopAsyncIteration, GeneratorExit)
"""How loops and generators end: no events of their own."""


class Reached:
    """A trace function: follows single lines only in functions that hold edited lines which have not been seen yet."""

    def __init__(self, edited: dict[str, list[int]]) -> None:
        self._edited = {file: set(lines) for file, lines in edited.items()}
        self.lines: set[tuple[str, int]] = set()
        self.raised: dict[tuple[Any, ...], int] = {}
        self._is_complete = True

    @property
    def is_complete(self) -> bool:
        """Whether the whole program was traced."""
        return self._is_complete

    def totals(self) -> object:
        """The edited lines that were run, the exceptions that were raised, and whether the trace is complete."""
        raised = [[*key, count] for key, count in list(self.raised.items())]
        return {"lines": sorted(self.lines), "raised": raised, "complete": self.is_complete}

    def reset(self) -> None:
        """Forget what the parent of this process did."""
        self.lines.clear()
        self.raised.clear()

    def tracer(self) -> Callable[[FrameType, str, Any], Any]:
        """The function that is called for every call of a Python function: nearly always one that isn't the user's.

        A closure with nothing to look up for such code, since it decides how much slower the program gets.
        """
        foreign: set[str] = set()
        calls = 0

        def trace(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001  # the protocol of trace functions
            nonlocal calls
            calls += 1
            if frame.f_code.co_filename in foreign and calls < CALLS:
                return None
            if calls >= CALLS:
                self._stop()
            file = user_file(frame.f_code)
            if not file:
                foreign.add(frame.f_code.co_filename)
                return None
            return self._followed(frame, file)

        return trace

    def _stop(self) -> None:
        self._is_complete = False
        threading.settrace(None)
        sys.settrace(None)

    def _followed(self, frame: FrameType, file: str) -> Callable[[FrameType, str, Any], Any]:
        """Follow a function of the user: what it raises, and its lines as long as edited ones have not been seen."""
        wanted = self._wanted(frame.f_code, file)
        frame.f_trace_lines = bool(wanted)
        return lambda frame, event, argument: self._inside(frame, event, argument, file, wanted)

    def _wanted(self, code: CodeType, file: str) -> set[int]:
        edited = self._edited.get(file)
        if not edited:
            return set()
        seen = {line for name, line in self.lines if name == file}
        return {line for _, _, line in code.co_lines() if line in edited and line not in seen}

    def _inside(self, frame: FrameType, event: str, argument: Any, file: str, wanted: set[int]) -> Any:
        if event == "line" and frame.f_lineno in wanted:
            wanted.discard(frame.f_lineno)
            self.lines.add((file, frame.f_lineno))
            frame.f_trace_lines = bool(wanted)
        elif event == "exception" and not issubclass(argument[0], _ORDINARY):
            self._note(file, frame, *argument)
        return frame.f_trace

    def _note(self, file: str, frame: FrameType, kind: type[BaseException], error: object, traceback: Any) -> None:
        if not user_file_below(traceback):
            key = (file, function_name(frame.f_code), frame.f_lineno, kind.__name__, str(error).partition("\n")[0][:200])
            self.raised[key] = self.raised.get(key, 0) + 1


def user_file_below(traceback: Any) -> bool:
    """Whether the exception comes from another function of the user, deeper, where it was noted already."""
    traceback = traceback.tb_next if traceback is not None else None
    while traceback is not None:
        if user_file(traceback.tb_frame.f_code):
            return True
        traceback = traceback.tb_next
    return False


def raised_at(traceback: Any) -> Place:
    """The innermost line of the user's code in a traceback."""
    place = Place()
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if user_file(code):
            place = Place(user_file(code), function_name(code), traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


def install(writer: Writer) -> None:
    """Trace this thread and those to come, unless a debugger or a coverage tool does so already."""
    if sys.gettrace() is not None:
        return
    with open(os.environ["TORCHFIX_EDITED"], encoding="utf-8") as file:
        reached = Reached(json.load(file))
    writer.add_part("reached", reached.totals, reached.reset)
    trace = reached.tracer()
    threading.settrace(trace)
    sys.settrace(trace)
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  # what runs already is told by hand: the functions that import torch
    while frame is not None:
        frame.f_trace = trace(frame, "call", None)
        frame = frame.f_back
