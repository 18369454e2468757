"""A private copy of a project, that is pristine before each trial."""

from __future__ import annotations

import os
import shutil
import stat
import time
from typing import TYPE_CHECKING

from .project import Entry, Kind, NotCopied, is_inside, stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TICK = 0.02
"""Seconds, more than the clock of a file system takes to advance."""


class Copy:
    """The copy of the project at `top` in `folder`, which it makes, and makes anew as far as it was changed."""

    def __init__(self, top: str, folder: str, entries: Sequence[Entry]) -> None:
        self.top, self.folder = top, folder
        self._entries = {entry.path: entry for entry in entries}
        self._stamps: dict[str, tuple[int, ...]] = {}
        """Of the files in the copy that are as in the project."""

    def add_link(self, path: str, target: str) -> None:
        """Let a link stand at a path below the top, if nothing does; it leads to a place in the copy, relative to the top."""
        for folder in _folders(path):
            self._entries.setdefault(folder, Entry(folder, Kind.FOLDER))
        self._entries.setdefault(path, Entry(path, Kind.LINK, target=target, leads_inside=True))

    def inside(self, path: str) -> str | None:
        """Where a path (absolute) of the project is in the copy; None when it isn't part of it, or only linked."""
        path = os.path.realpath(path)
        if not is_inside(path, self.top):
            return None
        name = os.path.relpath(path, self.top)
        above = [self._entries.get(part) for part in (*_folders(name), name)]
        return None if any(entry and entry.kind is Kind.LINK for entry in above) else os.path.normpath(os.path.join(self.folder, name))

    def reset(self, replacements: Mapping[str, bytes]) -> None:
        """Make the copy equal to the project, but for files whose content is given by path below the top.

        Raises `NotCopied` where the project changed meanwhile, and for a replaced file that isn't part of the copy.
        """
        if os.path.islink(self.folder) or not os.path.isdir(self.folder):
            remove(self.folder)
            os.makedirs(self.folder)
        self._remove_foreign("")
        for entry in self._entries.values():
            if not self._is_pristine(entry):
                self._restore(entry)
        for path, data in replacements.items():
            self._replace(path, data)
        # What is written in the same tick of the clock as the copy would have the same time stamp, and not be noticed.
        time.sleep(_TICK)

    def _remove_foreign(self, folder: str) -> None:
        """Remove what a command has made, and what it made something else of."""
        for item in _listed(os.path.join(self.folder, folder)):
            name = os.path.join(folder, item.name)
            entry = self._entries.get(name)
            if entry is None or entry.kind is not _kind(item):
                remove(item.path)
            elif entry.kind is Kind.FOLDER:
                self._remove_foreign(name)

    def _is_pristine(self, entry: Entry) -> bool:
        path = os.path.join(self.folder, entry.path)
        if entry.kind is Kind.FOLDER:
            return os.path.isdir(path)
        return os.path.lexists(path) and self._stamps.get(entry.path) == stamp(path)

    def _restore(self, entry: Entry) -> None:
        path = os.path.join(self.folder, entry.path)
        if entry.kind is Kind.FOLDER:
            os.mkdir(path)
            return
        remove(path)
        if entry.kind is Kind.LINK:
            os.symlink(os.path.join(self.folder, entry.target) if entry.leads_inside else entry.target, path)
        else:
            self._copy_file(entry, path)
        self._stamps[entry.path] = stamp(path)

    def _copy_file(self, entry: Entry, path: str) -> None:
        original = os.path.join(self.top, entry.path)
        try:
            if entry.path in self._stamps and stamp(original) != entry.stamp:
                raise NotCopied(f"{original} changed while it was in use for trials: run again")
            shutil.copy2(original, path)
        except OSError as error:
            raise NotCopied(f"{original} can't be copied: {error.strerror}; run again, or link it with --link") from None

    def _replace(self, name: str, data: bytes) -> None:
        entry = self._entries.get(name)
        if entry is None or entry.kind is not Kind.FILE:
            raise NotCopied(f"{os.path.join(self.top, name)} is to be changed, and isn't part of the private copy: don't link it")
        path = os.path.join(self.folder, name)
        mode = stat.S_IMODE(os.stat(path).st_mode)
        remove(path)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        self._stamps[name] = ()


def _folders(path: str) -> list[str]:
    """The folders around a relative path, outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _kind(item: os.DirEntry[str]) -> Kind | None:
    if item.is_symlink():
        return Kind.LINK
    if item.is_dir():
        return Kind.FOLDER
    return Kind.FILE if item.is_file() else None


def _listed(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, even if a command has made it unreadable."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        os.chmod(folder, stat.S_IRWXU)
    with os.scandir(folder) as scan:
        return list(scan)


def remove(path: str) -> None:
    """Remove a file, a link, or a folder with all that is in it; a path where nothing is, is fine."""
    if not os.path.isdir(path) or os.path.islink(path):
        if os.path.lexists(path):
            os.unlink(path)
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        _make_writable(path)
        shutil.rmtree(path)


def _make_writable(folder: str) -> None:
    os.chmod(folder, stat.S_IRWXU)
    for root, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(root, name)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IRWXU)
