"""How much longer a training takes under the recorder of `verify --script`, in CPU time, against the same training without it.

Usage: python benchmarks/recorder.py [--rounds N] [--steps N]

Each model is trained for some steps on one thread, in turn with and without the recorder; the ratio is the median of those of
each round. The start of Python and torch is counted: `steps` alone are told as well, from two lengths of the same training.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "torchfix_codemods" / "verify" / "recorder" / "site"
MODELS = {
    "small: 2 layers, batches of 32": "nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), (32, 64)",
    "deep: 60 layers": "nn.Sequential(*[nn.Linear(64, 64) for _ in range(60)], nn.Linear(64, 10)), (32, 64)",
    "convolutions on 32 by 32": "nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)), (32, 3, 32, 32)",
}
PROGRAM = """
import sys
import torch
from torch import nn

model, shape = {model}
model(torch.randn(shape))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(shape)), torch.zeros(shape[0], dtype=torch.long))
    loss.backward()
    optimizer.step()
"""


def main() -> None:
    """Print the ratio of each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    for name, model in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program.py")
            program.write_text(PROGRAM.format(model=model), encoding="utf-8")
            rounds = [ratios(program, options.steps) for _ in range(options.rounds)]
        whole, steps = (statistics.median(values) for values in zip(*rounds, strict=True))
        print(f"{name}: {whole:.2f} times as long, the steps alone {steps:.2f}")


def ratios(program: Path, steps: int) -> tuple[float, float]:
    """Of the whole program, and of its steps alone: recorded time by plain time."""
    start = {recorded: cpu_seconds(program, 1, recorded) for recorded in (False, True)}
    whole = {recorded: cpu_seconds(program, steps, recorded) for recorded in (False, True)}
    return whole[True] / whole[False], (whole[True] - start[True]) / (whole[False] - start[False])


def cpu_seconds(program: Path, steps: int, recorded: bool) -> float:
    """Seconds of CPU time that the program takes."""
    with tempfile.TemporaryDirectory() as traces:
        edited = Path(traces, "edited.json")
        edited.write_text("{}", encoding="utf-8")
        recording = {
            "PYTHONPATH": str(SITE),
            "TORCHFIX_SEED": "0",
            "TORCHFIX_ROOT": str(program.parent),
            "TORCHFIX_TRACES": traces,
            "TORCHFIX_EDITED": str(edited),
        }
        environ = {**os.environ, "OMP_NUM_THREADS": "1", **(recording if recorded else {})}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, str(program), str(steps)], env=environ, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
