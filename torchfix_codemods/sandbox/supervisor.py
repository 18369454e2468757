"""The process between us and a command: it starts the command, and ends all that comes of it, even when we are killed.

Run as a script with an order in JSON. Its stdin is a pipe of which we hold the other end: when that is closed, by us or by
our death, the command is ended. What became of it is written to a pipe when no process of it is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from typing import Any

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
"""Options of `prctl`, in linux/prctl.h."""
_ROUNDS = 500
"""Looks for processes that are left, 10 ms apart."""


def main() -> None:
    """Follow the order."""
    order = json.loads(sys.argv[1])
    _control(_SET_CHILD_SUBREAPER, 1)
    woken = _wake_on_exit()
    command = _started(order)
    _release_output()
    ended = _is_ended_by_us(command, woken)
    _end(command)
    os.write(order["report"], json.dumps({"returncode": command.returncode, "ended": ended}).encode())


def _started(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    def prepare() -> None:
        _control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if order["memory"] is not None:
            # Not RLIMIT_AS: CUDA and mapped files reserve far more addresses than they use memory.
            _limit(resource.RLIMIT_DATA, order["memory"], order["memory"])
        if order["cpu"] is not None:
            _limit(resource.RLIMIT_CPU, order["cpu"], order["cpu"] + 1)

    # This process has one thread, so a function between fork and exec is safe.
    return subprocess.Popen(["/bin/sh", "-c", order["command"]], stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare)  # noqa: PLW1509  # see above


def _limit(kind: int, soft: int, hard: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, most = resource.getrlimit(kind)
    hard = hard if most == resource.RLIM_INFINITY else min(hard, most)
    resource.setrlimit(kind, (min(soft, hard), hard))


def _wake_on_exit() -> int:
    """A file descriptor that can be read from when a child has ended."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _release_output() -> None:
    """The command's output has no other writer than the command."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _is_ended_by_us(command: subprocess.Popen[bytes], woken: int) -> bool:
    """Wait for the end of the command (False), or for the wish to end it (True)."""
    while command.poll() is None:
        ready, _, _ = select.select([0, woken], [], [])
        if 0 in ready:
            return command.poll() is None
        os.read(woken, 4096)
    return False


def _end(command: subprocess.Popen[bytes]) -> None:
    """Kill the group of the command, and all other processes that came of it: orphans are our children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command.pid, signal.SIGKILL)
    command.wait()
    for _ in range(_ROUNDS):
        left = _descendants()
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        _reap()
        if not left:
            return
        time.sleep(0.01)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants() -> list[int]:
    """All processes below this one; none where there is no /proc to ask."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            children.setdefault(_parent(name), []).append(int(name))
    found = list(children.get(os.getpid(), ()))
    for process in found:
        found += children.get(process, ())
    return found


def _parent(process: str) -> int:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name of the program, in parentheses, may hold anything.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _control(option: int, value: int) -> None:
    """Call `prctl`, which Linux alone has."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
