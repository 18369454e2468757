"""Call a function in a forked child of this process: whatever it does, this process never sees but its result."""

from __future__ import annotations

import contextlib
import io
import json
import os
import selectors
import signal
import struct
import tempfile
import time
import traceback
from typing import TYPE_CHECKING

from .contract import Side

if TYPE_CHECKING:
    from collections.abc import Callable

_LENGTH = struct.Struct("=Q")
"""Stands before the result that a child sends."""


def in_child(function: Callable[[], dict[str, object]], timeout: float) -> Side:
    """Call a function in a forked child, in a new temporary folder; its result (JSON values), or how it failed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _child(function, folder, writer)
        os.close(writer)
        try:
            data, in_time = _read(reader, timeout)
        finally:
            _end(child)
            _, status = os.waitpid(child, 0)
    if not in_time:
        return Side(failure=f"took more than {timeout:g} seconds")
    return _side(data, os.waitstatus_to_exitcode(status))


def _end(child: int) -> None:
    """Kill what is left of a child: itself when it is late, and the processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _child(function: Callable[[], dict[str, object]], folder: str, writer: int) -> None:
    """The life of a child: it never returns."""
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = json.dumps(function())
    except BaseException:  # noqa: BLE001  # told to the parent, whatever it is
        result = json.dumps(traceback.format_exc(limit=-3))
    try:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(_LENGTH.pack(len(result)) + result.encode())
    finally:
        os._exit(0)


def _read(reader: int, timeout: float) -> tuple[bytes, bool]:
    """What a child writes, and whether it came in time; less than was announced when the child died."""
    deadline = time.monotonic() + timeout
    data = b""
    with selectors.DefaultSelector() as selector, os.fdopen(reader, "rb", buffering=0) as pipe:
        selector.register(pipe, selectors.EVENT_READ)
        # Waiting for the end of the pipe would be waiting for all processes that the child has started.
        while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return b"", False
            chunk = pipe.read(1 << 20)
            if not chunk:
                return b"", True
            data += chunk
    return data[_LENGTH.size :], True


def _side(data: bytes, status: int) -> Side:
    if not data:
        return Side(failure=f"the process ended with status {status}")
    result = json.loads(data)
    return Side(failure=f"the harness failed: {result}") if isinstance(result, str) else Side(result)
