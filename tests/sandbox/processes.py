"""What processes run on this machine."""

from __future__ import annotations

import os
import time


def alive(marker):
    """The processes that run and have a text in their command line."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid() and _has(pid, marker)]


def _has(pid, marker):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read()
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return marker.encode() in arguments and state != b"Z"


def gone(marker, seconds=20):
    """Whether no process with the text is left, now or soon."""
    return _becomes(lambda: not alive(marker), seconds)


def appeared(path, seconds=60):
    """Whether a file is there, now or soon."""
    return _becomes(path.exists, seconds)


def _becomes(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
