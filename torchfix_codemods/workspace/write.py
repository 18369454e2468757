"""Replace a file atomically, or say why not."""

from __future__ import annotations

import os
import stat
import tempfile


class NotWritten(Exception):
    """A file that was left as it was; the text is the reason, for people."""


def write(path: str, before: bytes, after: bytes, root: str) -> None:
    """Replace the content of a file that still holds `before`; raises `NotWritten` and leaves the file alone otherwise.

    A reader sees the old file or the new one, never a part: the text goes to a new file in the same folder, is
    flushed to disk, and takes the old one's name and mode. A symbolic link stays one: its target is written, if it
    lies inside `root`.
    """
    target = os.path.realpath(path)
    _refuse_unless_plain(path, target, os.path.realpath(root))
    try:
        _replace(target, before, after)
    except OSError as error:
        raise NotWritten(f"can't be written: {error.strerror}") from None


def may_write(path: str, root: str) -> bool:
    """Whether `write` is likely to be able to replace a file."""
    try:
        _refuse_unless_plain(path, os.path.realpath(path), os.path.realpath(root))
    except NotWritten:
        return False
    return True


def _refuse_unless_plain(path: str, target: str, root: str) -> None:
    try:
        status = os.stat(target)
    except OSError as error:
        raise NotWritten(f"can't be read again: {error.strerror}") from None
    if os.path.islink(path) and os.path.commonpath([target, root]) != root:
        raise NotWritten("a symbolic link to a file outside the folder; name that file itself")
    if not stat.S_ISREG(status.st_mode):
        raise NotWritten("not a regular file")
    if status.st_nlink > 1:
        raise NotWritten("has hard links, which replacing it would cut; copy it first")
    if not status.st_mode & stat.S_IWUSR or not os.access(target, os.W_OK):
        raise NotWritten("is read-only")


def _replace(target: str, before: bytes, after: bytes) -> None:
    folder, name = os.path.split(target)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".torchfix", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        _refuse_if_changed(target, before)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _refuse_if_changed(target: str, before: bytes) -> None:
    with open(target, "rb") as file:
        if file.read() != before:
            raise NotWritten("changed while it was being analysed; run again")
