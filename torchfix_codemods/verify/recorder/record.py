"""Puts the recorder into a program that has just imported torch: one part for each kind of thing that is recorded."""

from __future__ import annotations

import os

from . import backwards, files, forwards, notices, reached, steps
from .writer import Writer, watch_end


def record() -> None:
    """Set all hooks. What can't be set with this torch is noted in the trace, and the rest recorded."""
    writer = Writer(os.environ["TORCHFIX_TRACES"])
    watch_end(writer)
    stale = backwards.Staleness()
    writer.guarded(forwards.install)(writer)
    writer.guarded(backwards.install)(writer, stale)
    writer.guarded(steps.install)(writer, stale)
    writer.guarded(files.install)(writer)
    writer.guarded(notices.install)(writer)
    writer.guarded(reached.install)(writer)
