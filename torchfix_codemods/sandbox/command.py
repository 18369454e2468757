"""Run a shell line under limits; whatever happens, none of its processes outlives the call."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .output import Output, Recorder
from .signals import deferred

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUPERVISOR = os.path.join(os.path.dirname(__file__), "supervisor.py")
_GRACE = 15.0
"""Seconds that the supervisor has to end the command, before it is killed itself."""
_SHELL_SIGNAL = 128
"""A shell adds this to the number of the signal that has killed its command."""
_CAUSES = {"SIGKILL": "out of memory?", "SIGXCPU": "the CPU limit"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use."""

    timeout: float = 600.0
    """Seconds by the clock."""
    memory: int | None = None
    """Bytes of data, for each process."""
    cpu: int | None = None
    """Seconds of CPU time, for each process."""
    output: int = 1_000_000
    """Bytes to keep of each stream."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and what it printed."""

    returncode: int
    """The exit code; less than 0 for a signal."""
    timed_out: bool
    seconds: float
    stdout: Output
    stderr: Output
    limits: Limits

    @property
    def passed(self) -> bool:
        """Whether the command succeeded."""
        return self.returncode == 0 and not self.timed_out

    @property
    def signal(self) -> str:
        """The name of the signal that killed the command, or a process that its shell waited for; empty when none did."""
        number = -self.returncode if self.returncode < 0 else self.returncode - _SHELL_SIGNAL
        return signal.Signals(number).name if number in set(signal.Signals) else ""

    @property
    def reason(self) -> str:
        """How it ended, in words."""
        if self.timed_out:
            return f"timed out after {self.limits.timeout:g} s"
        if self.signal:
            cause = f" ({_CAUSES[self.signal]})" if self.signal in _CAUSES else ""
            return f"killed by {self.signal}{cause}"
        return f"exit {self.returncode}"

    def log(self, lines: int = 20) -> str:
        """The end of what it printed: of stdout, then of stderr."""
        return "\n".join(filter(None, (self.stdout.end(lines), self.stderr.end(lines))))


def run(command: str, cwd: str, env: Mapping[str, str], limits: Limits) -> Outcome:
    """Run a line of `/bin/sh` in a folder, with exactly these variables and nothing on stdin; returns when no process of it is left.

    On an exception (such as `KeyboardInterrupt`) the command is ended first. Raises `OSError` when nothing can be started.
    """
    started = time.monotonic()
    supervised = _Supervised(limits)
    try:
        supervised.start(command, cwd, env)
        supervised.wait(started + limits.timeout)
    finally:
        with deferred():
            supervised.end()
    return supervised.outcome(time.monotonic() - started)


class _Supervised:
    """A supervisor and its command, and the pipes to them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pipes = {name: _Pipe() for name in ("order", "report", "stdout", "stderr")}
        self._recorders = {"report": Recorder(1000), "stdout": Recorder(limits.output), "stderr": Recorder(limits.output)}
        self._selector = selectors.DefaultSelector()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: str, cwd: str, env: Mapping[str, str]) -> None:
        for name, recorder in self._recorders.items():
            os.set_blocking(self._pipes[name].reader.fileno(), False)
            self._selector.register(self._pipes[name].reader, selectors.EVENT_READ, recorder)
        report = self._pipes["report"].writer.fileno()
        order = json.dumps({"command": command, "report": report, "memory": self._limits.memory, "cpu": self._limits.cpu})
        self._process = subprocess.Popen(
            # Isolated and without site-packages: the supervisor needs nothing but the standard library, and starts fast.
            [sys.executable, "-I", "-S", _SUPERVISOR, order],
            cwd=cwd,
            env=env,
            stdin=self._pipes["order"].reader,
            stdout=self._pipes["stdout"].writer,
            stderr=self._pipes["stderr"].writer,
            pass_fds=[report],
            start_new_session=True,
        )
        self._close_its_ends()

    def _close_its_ends(self) -> None:
        self._pipes["order"].reader.close()
        for name in self._recorders:
            self._pipes[name].writer.close()

    def wait(self, deadline: float) -> bool:
        """Take output until the supervisor is done; False when the deadline came first."""
        while self._pipes["report"].reader in self._selector.get_map():
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not ready and time.monotonic() >= deadline:
                return False
            for key, _ in ready:
                self._take(key)
        return True

    def _take(self, key: selectors.SelectorKey) -> bool:
        """Read from a pipe; False when there is nothing to read now, or ever again."""
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return False
        key.data.add(data)
        if not data:
            self._selector.unregister(key.fileobj)
        return bool(data)

    def end(self) -> None:
        """End the command if it still runs, wait until it is gone, and take what is left of its output."""
        self._close_its_ends()
        self._pipes["order"].writer.close()
        is_done = self.wait(time.monotonic() + _GRACE)
        if self._process is not None:
            if not is_done:
                self._process.kill()
            self._process.wait()
        for key in list(self._selector.get_map().values()):
            # Where orphans can't be found (there is no /proc), one may hold the pipe: the end of it is not awaited.
            while self._take(key):
                pass
        self._selector.close()
        for name in self._recorders:
            self._pipes[name].reader.close()

    def outcome(self, seconds: float) -> Outcome:
        output = {name: recorder.output() for name, recorder in self._recorders.items()}
        # No report: the supervisor itself was killed.
        told = json.loads(output["report"].head or json.dumps({"returncode": -signal.SIGKILL, "ended": False}))
        return Outcome(told["returncode"], told["ended"], seconds, output["stdout"], output["stderr"], self._limits)


class _Pipe:
    """Both ends of a pipe."""

    def __init__(self) -> None:
        reader, writer = os.pipe()
        self.reader, self.writer = os.fdopen(reader, "rb", 0), os.fdopen(writer, "wb", 0)
