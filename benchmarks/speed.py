"""Wall time of `check` in one process against TorchFix, on the same files, in the same run.

Usage: python benchmarks/speed.py [FOLDER] --torchfix-python PYTHON [--rounds N] [--files N]

FOLDER holds Python files that use torch; without it, a corpus is made (N files, the same every time). TorchFix pins an
old libcst, so that it needs an environment of its own: PYTHON is the interpreter there. The two run in turn, and the
ratio is the median of those of each round. A run that did not get to its end is an error, and no time.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import corpus

# The last words of a run that read every file, with their number: a crash exits with 1 as well, as findings do.
OURS_ENDS = re.compile(r"in (\d+) files?\b")
TORCHFIX_ENDS = re.compile(r"Finished checking (\d+) files")


@dataclass(frozen=True, slots=True)
class Run:
    """What one command took, in seconds, and how many files it says it read."""

    seconds: float
    files: int


def main() -> None:
    """Print both times and their ratio for each round, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--torchfix-python", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=100)
    options = parser.parse_args()
    if options.rounds < 1 or options.files < 1:
        parser.error("--rounds and --files must be at least 1")
    if options.folder is not None and not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder: name one that holds Python files, or none to have them made")
    if options.folder is not None:
        compare(options.folder, options.torchfix_python, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus.write(Path(folder), options.files)
        compare(Path(folder), options.torchfix_python, options.rounds)


def compare(folder: Path, torchfix_python: str, rounds: int) -> None:
    """Run the two in turn and print what they took."""
    ours = [sys.executable, "-m", "torchfix_codemods", "check", "--jobs", "1", str(folder)]
    torchfix = [torchfix_python, "-m", "torchfix", "--select=ALL", "-j", "1", str(folder)]
    timed(ours, OURS_ENDS)  # fills the file cache for both
    ratios, own_times, torchfix_times = [], [], []
    for _ in range(rounds):
        first, second = timed(ours, OURS_ENDS), timed(torchfix, TORCHFIX_ENDS)
        own_times.append(first.seconds)
        torchfix_times.append(second.seconds)
        ratios.append(second.seconds / first.seconds)
        print(
            f"check {first.seconds:8.2f} s for {first.files} files   "
            f"torchfix {second.seconds:8.2f} s for {second.files} files   ratio {ratios[-1]:6.1f}",
            flush=True,
        )
    own, other, ratio = (statistics.median(values) for values in (own_times, torchfix_times, ratios))
    print(f"median of {rounds} rounds, one process each: check {own:.2f} s, torchfix {other:.2f} s, ratio {ratio:.1f}")


def timed(command: list[str], ends: re.Pattern[str]) -> Run:
    """The wall time of a command that reads to the end, whatever it finds; exits with its own words when it does not."""
    start = time.perf_counter()
    try:
        result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    except OSError as error:
        sys.exit(f"{command[0]} can't be run ({error.strerror}): give the path of a Python interpreter")
    seconds = time.perf_counter() - start
    counts = ends.findall(result.stdout + result.stderr)
    if not counts or counts[-1] == "0":
        words = (result.stderr.strip() or result.stdout.strip() or "it read no file").splitlines()[-1]
        sys.exit(f"`{' '.join(command)}` did not finish (exit {result.returncode}): {words}")
    return Run(seconds, int(counts[-1]))


if __name__ == "__main__":
    main()
