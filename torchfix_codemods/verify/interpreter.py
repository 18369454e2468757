"""A Python with torch that executes cases: the one that runs this, or another."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .contract import Side

if TYPE_CHECKING:
    from .case import Case

TIMEOUT = 60.0
"""Seconds that one side may take."""
OLDEST = (3, 10)
"""The first Python that can execute cases."""
_PACKAGE = Path(__file__).resolve().parents[1]
_START = f"""\
import sys
if __name__ == "__main__":
    if sys.version_info < {OLDEST}:
        sys.stdout.write('{{"error": "it is Python %d.%d, and {OLDEST[0]}.{OLDEST[1]} or newer is needed"}}' % sys.version_info[:2])
    else:
        from torchfix_codemods.verify.server import main
        main()
"""


class InterpreterError(Exception):
    """A Python that can't execute cases; the text says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Versions:
    """What executes."""

    python: str
    torch: str

    def __str__(self) -> str:
        return f"torch {self.torch} on Python {self.python}"


class Interpreter:
    """Executes cases in processes of their own; one process with torch loaded is kept, from which they are forked."""

    def __init__(self, python: str = sys.executable) -> None:
        """Start it; raises `InterpreterError`."""
        self.path = python
        self._names: dict[str, str] = {}
        self._start()

    def _start(self) -> None:
        program = shutil.which(self.path)
        if program is None:
            raise InterpreterError(f"{self.path}: no such program; name the Python to use, for example .venv/bin/python")
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (place := Path(self._folder.name)).joinpath("start.py").write_text(_START, encoding="utf-8")
        # Nothing of ours is installed there: the other interpreter finds this package, and nothing else, beside the start.
        place.joinpath(_PACKAGE.name).symlink_to(_PACKAGE, target_is_directory=True)
        self._complaints = place.joinpath("complaints")
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                [str(Path(program).absolute()), str(place / "start.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        self.versions = self._greeting()

    def _greeting(self) -> Versions:
        line = self._line()
        try:
            hello: dict[str, str] = json.loads(line)
            if "error" not in hello:
                return Versions(hello["python"], hello["torch"])
            reason = hello["error"]
        except (ValueError, TypeError, KeyError):
            reason = self._complaint() or "it doesn't behave like a Python"
        self.close()
        raise InterpreterError(f"{self.path}: can't execute cases: {reason}")

    def device_name(self, device: str) -> str:
        """What a device is called; empty where it isn't there. Raises `InterpreterError`."""
        if device not in self._names:
            self._names[device] = str(self._ask("device_name", {"device": device, "timeout": TIMEOUT}))
        return self._names[device]

    def observe(self, case: Case, code: Path, device: str, timeout: float = TIMEOUT) -> Side:
        """Run a file under the harness of a case; what was observed, or how it failed."""
        seed = case.contract.seed if case.contract else 0
        request = {"case": case.name, "harness": str(case.harness), "folder": str(case.before.parent), "code": str(code)}
        try:
            return Side(**self._ask("observe", {**request, "device": device, "seed": seed, "timeout": timeout}))
        except InterpreterError as error:
            self._start()
            return Side(failure=str(error))

    def _ask(self, question: str, values: dict[str, object]) -> Any:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"ask": question, "values": values}).encode() + b"\n")
            self._process.stdin.flush()
        line = self._line()
        if line:
            return json.loads(line)
        reason = f"{self.path} ended with status {self._process.wait()} {self._complaint()}".rstrip()
        self.close()
        raise InterpreterError(reason)

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _complaint(self) -> str:
        """The line that says what went wrong: of a traceback the last, of any other text the first."""
        lines = self._complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1 if lines[0].startswith("Traceback") else 0].strip() if lines else ""

    def close(self) -> None:
        """End it; a second time does nothing."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._folder.cleanup()


@functools.cache
def present() -> Interpreter:
    """The interpreter that runs this; started when it is first needed. Raises `InterpreterError`."""
    interpreter = Interpreter()
    atexit.register(interpreter.close)
    return interpreter
