"""Whether a project is small enough to be copied, and what makes it large."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import TYPE_CHECKING

from .project import NotCopied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .project import Entry

_SHOWN = 3
"""Large folders that a message names."""
_MOST = 0.8
"""A part that holds more than this of a folder is named in its place."""


def check_size(top: str, entries: Sequence[Entry], limit: int, folder: str) -> None:
    """Raise `NotCopied` when the copy would exceed a limit in bytes, or the space that is left where `folder` is."""
    total = sum(entry.size for entry in entries)
    free = shutil.disk_usage(folder).free
    if total > limit:
        raise NotCopied(
            f"a private copy of {top} would take {megabytes(total)}, more than the {megabytes(limit)} of --copy-limit; "
            f"{_largest(top, entries)}; --link a folder that the command only reads, or raise --copy-limit"
        )
    if total > free:
        raise NotCopied(
            f"a private copy of {top} takes {megabytes(total)}, and {folder} has {megabytes(free)} left; "
            f"{_largest(top, entries)}; --link a folder that the command only reads, or let TMPDIR name another place"
        )


def _largest(top: str, entries: Sequence[Entry]) -> str:
    sizes = Counter[str]()
    for entry in entries:
        for path in _around(entry.path) if entry.size else ():
            sizes[path] += entry.size
    roots = [(path, size) for path, size in sizes.most_common() if "/" not in path][:_SHOWN]
    named = [_narrowed(path, sizes) for path, _ in roots]
    return "the largest: " + ", ".join(f"{os.path.join(top, path)} ({megabytes(sizes[path])})" for path in named)


def _around(path: str) -> list[str]:
    """A path and the folders around it."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _narrowed(path: str, sizes: Counter[str]) -> str:
    """The folder below a path that holds nearly all of it."""
    while True:
        inner = [name for name in sizes if os.path.dirname(name) == path and sizes[name] > _MOST * sizes[path]]
        if not inner:
            return path
        path = inner[0]


def megabytes(size: int) -> str:
    """A size for people."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
