"""What belongs to a project: where its top is, and what of it goes into a private copy."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What stands at the top of a project."""
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
"""Histories and caches."""
_LINKED = frozenset({"node_modules", ".tox", ".nox"})
"""Folders of installed packages."""
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
"""What stands in an environment of Python."""


class NotCopied(Exception):
    """A project that can't be copied; the text says why, and what to do."""


class Kind(Enum):
    """What an entry is."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or link of the project, by its path below the top."""

    path: str
    kind: Kind
    size: int = 0
    target: str = ""
    """Where a link leads: a path that is absolute, or (where it leads into the project) relative to the top."""
    leads_inside: bool = False
    stamp: tuple[int, ...] = ()
    """What tells whether a file is still the one that was seen."""


def top(paths: Iterable[str], current: str) -> str:
    """The top of the project around some paths: the nearest folder with a marker, else the folder that they have in common.

    Where the current folder belongs to a project around that one, it is the top of that: this is where commands are given.
    """
    folders = [path if os.path.isdir(path) else os.path.dirname(path) for path in map(os.path.realpath, paths)]
    common = os.path.commonpath([_marked(folder) or folder for folder in folders])
    around = _marked(os.path.realpath(current))
    return around if around and is_inside(common, around) else common


def _marked(folder: str) -> str | None:
    while not any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS):
        if os.path.dirname(folder) == folder:
            return None
        folder = os.path.dirname(folder)
    return folder


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it; both absolute and normal."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_environment(folder: str) -> bool:
    """Whether a folder is an environment of Python."""
    return any(os.path.exists(os.path.join(folder, name)) for name in _ENVIRONMENT)


def entries(folder: str, links: Sequence[str] = (), skipped: str = "") -> Iterator[Entry]:
    """What a copy of the project holds, folders before what is in them.

    Histories, caches, sockets and other special files are left out; environments, and the paths in `links` (absolute), are
    linked. `skipped` is a folder that counts as absent. Raises `NotCopied` for what can't be read.
    """
    return _below(folder, "", frozenset(links), skipped)


def _below(root: str, path: str, links: frozenset[str], skipped: str) -> Iterator[Entry]:
    try:
        with os.scandir(os.path.join(root, path)) as scan:
            found = sorted(scan, key=lambda item: item.name)
    except OSError as error:
        raise NotCopied(_unreadable(os.path.join(root, path), error)) from None
    for item in found:
        name = os.path.join(path, item.name)
        if item.name in _LEFT_OUT or item.path == skipped:
            continue
        if item.is_symlink():
            yield _link(root, name)
        elif item.path in links or (item.is_dir() and (item.name in _LINKED or is_environment(item.path))):
            yield Entry(name, Kind.LINK, target=item.path)
        elif item.is_dir():
            yield Entry(name, Kind.FOLDER)
            yield from _below(root, name, links, skipped)
        elif item.is_file():
            yield _file(root, name)


def _file(root: str, name: str) -> Entry:
    path = os.path.join(root, name)
    if not os.access(path, os.R_OK):
        raise NotCopied(_unreadable(path, PermissionError(13, "Permission denied")))
    return Entry(name, Kind.FILE, os.stat(path).st_size, stamp=stamp(path))


def _link(root: str, name: str) -> Entry:
    """A link that leads into the project leads into the copy; others lead where they led."""
    path = os.path.join(root, name)
    there = os.path.join(os.path.dirname(path), os.readlink(path))
    # The last part stays as it is: it may be a link itself, which is followed when it is met.
    target = os.path.normpath(os.path.join(os.path.realpath(os.path.dirname(there)), os.path.basename(there)))
    if is_inside(target, root):
        return Entry(name, Kind.LINK, target=os.path.relpath(target, root), leads_inside=True)
    return Entry(name, Kind.LINK, target=target)


def _unreadable(path: str, error: OSError) -> str:
    return f"{path} can't be read for the private copy ({error.strerror}): make it readable, or link it with --link {path}"


def stamp(path: str) -> tuple[int, ...]:
    """What changes when a file, or a link, is written, replaced or given another mode."""
    status = os.lstat(path)
    return (
        stat.S_IFMT(status.st_mode),
        stat.S_IMODE(status.st_mode),
        status.st_size,
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
