"""Wall time of `check` in one process against TorchFix, on the same folder, in the same run.

Usage: python benchmarks/speed.py FOLDER --torchfix PATH_TO_TORCHFIX [--rounds N]

FOLDER holds Python files that use torch. TorchFix pins an old libcst, so that it needs an environment of its own: name
its console script. The two run in turn, and the ratio is the median of those of each round.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Print both times and their ratio for each round, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torchfix", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    files = len(list(options.folder.rglob("*.py")))
    ours = [sys.executable, "-m", "torchfix_codemods", "check", "--jobs", "1", "--quiet", str(options.folder)]
    theirs = [options.torchfix, "--select=ALL", "-j", "1", str(options.folder)]
    seconds(ours)
    rounds = [(seconds(ours), seconds(theirs)) for _ in range(options.rounds)]
    for first, second in rounds:
        print(f"check {first:8.2f} s   torchfix {second:8.2f} s   ratio {second / first:6.1f}")
    ratio = statistics.median(second / first for first, second in rounds)
    print(f"{files} files, one process each: check is {ratio:.0f} times as fast (median of {len(rounds)} rounds)")


def seconds(command: list[str]) -> float:
    """The wall time of a command, whatever it finds."""
    start = time.perf_counter()
    subprocess.run(command, check=False, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
