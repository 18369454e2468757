"""Warnings that were shown, and the exception that ended the program."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from .places import caller
from .reached import raised_at

if TYPE_CHECKING:
    from .writer import Writer


_OF_OUR_HOOKS = r"Using `torch\.compile\(module\)` when there are global hooks"
"""What torch says of the recorder: with `-W error` it would end the program."""


def install(writer: Writer) -> None:
    """Stand in the way of warnings and of the last exception, and pass both on."""
    counts: dict[tuple[Any, ...], int] = {}
    writer.add_part("warnings", lambda: [[*key, count] for key, count in list(counts.items())], counts.clear)
    show, end = warnings.showwarning, sys.excepthook

    @writer.guarded
    def note_warning(message: Any, category: type[Warning]) -> None:
        key = (*caller().line_only, category.__name__, str(message).partition("\n")[0][:200])
        counts[key] = counts.get(key, 0) + 1

    @writer.guarded
    def note_end(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        writer.row("raised", place=raised_at(traceback).line_only, label=kind.__name__, value=str(error).partition("\n")[0][:300])

    def showwarning(message: Any, category: type[Warning], *arguments: Any, **keywords: Any) -> None:
        note_warning(message, category)
        show(message, category, *arguments, **keywords)

    def excepthook(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        note_end(kind, error, traceback)
        end(kind, error, traceback)

    warnings.showwarning, sys.excepthook = showwarning, excepthook
    warnings.filterwarnings("ignore", message=_OF_OUR_HOOKS)
