"""Replace a file atomically, or say why not."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        temporary = _staged(target, before, after)
        _rename(temporary, target)
    except OSError as error:
        raise NotWritten(f"can't be written: {error.strerror}") from None


def write_together(changes: Sequence[tuple[str, bytes, bytes]], root: str) -> None:
    """Replace several files, given by path, what they still hold, and what they shall hold; raises `NotWritten` if any can't be.

    All new files lie beside the old ones before the first of them takes its name. Whoever calls this keeps signals off.
    """
    staged: list[tuple[str, str]] = []
    try:
        for path, before, after in changes:
            try:
                target = os.path.realpath(path)
                _refuse_unless_plain(path, target, os.path.realpath(root))
                staged.append((_staged(target, before, after), target))
            except NotWritten as error:
                raise NotWritten(f"{path}: {error}") from None
            except OSError as error:
                raise NotWritten(f"{path}: can't be written: {error.strerror}") from None
        while staged:
            _rename(*staged.pop(0))
    finally:
        for temporary, _ in staged:
            os.unlink(temporary)


def _rename(temporary: str, target: str) -> None:
    try:
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def may_write(path: str, root: str) -> bool:
    """Whether `write` is likely to be able to replace a file."""
    return not obstacle(path, root)


def obstacle(path: str, root: str) -> str:
    """What stands against replacing a file, for people; empty when nothing does."""
    try:
        _refuse_unless_plain(path, os.path.realpath(path), os.path.realpath(root))
    except NotWritten as refusal:
        return str(refusal)
    return ""


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


def _staged(target: str, before: bytes, after: bytes) -> str:
    """A new file beside the target, that only waits for its name."""
    folder, name = os.path.split(target)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".torchfix", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        _refuse_if_changed(target, before)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _refuse_if_changed(target: str, before: bytes) -> None:
    with open(target, "rb") as file:
        if file.read() != before:
            raise NotWritten("changed while it was being analysed; run again")
