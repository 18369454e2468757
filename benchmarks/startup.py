"""CPU time of `check` on an empty file, against that of a bare interpreter and of importing what it must not load.

Usage: python benchmarks/startup.py
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 9


def main() -> None:
    """Print the median CPU milliseconds of each command."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text("")
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "check on an empty file": [sys.executable, "-m", "torchfix_codemods", "check", "--quiet", str(empty)],
            "import typer": [sys.executable, "-c", "import typer"],
            "import libcst": [sys.executable, "-c", "import libcst"],
        }
        for name, command in commands.items():
            print(f"{name:24} {cpu_milliseconds(command):6.0f} ms")


def cpu_milliseconds(command: list[str]) -> float:
    """The median user and system time of a command, after one run that fills the caches."""
    times = []
    for _ in range(RUNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times[1:]) * 1000


if __name__ == "__main__":
    main()
