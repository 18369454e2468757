"""The recorder in a program that does what recorders are broken by."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from torchfix_codemods.verify.script import _SITE
from torchfix_codemods.verify.trace import read_traces

PROGRAM = """
import os

import torch
from torch import nn

model = nn.Linear(3, 1)


class Outer(torch.optim.Optimizer):
    def __init__(self, inner):
        super().__init__(inner.param_groups[0]["params"], {})
        self.inner = inner

    def step(self, closure=None):
        self.inner.step()


optimizer = Outer(torch.optim.SGD(model.parameters(), lr=0.1))
compiled = torch.compile(model, backend="eager")
for _ in range(2):
    compiled(torch.ones(2, 3)).sum().backward()
    optimizer.step()
parameters = dict(model.named_parameters())
torch.func.grad(lambda parameters: torch.func.functional_call(model, parameters, torch.ones(3)).sum())(parameters)
print("done", flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The finished process, and what its one trace holds."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "edited.json").write_text(json.dumps({}))
    (folder / "traces").mkdir()
    own = {
        "TORCHFIX_SEED": "0",
        "TORCHFIX_ROOT": str(folder),
        "TORCHFIX_TRACES": str(folder / "traces"),
        "TORCHFIX_EDITED": str(folder / "edited.json"),
        "PYTHONPATH": str(_SITE),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-W", "error", "program.py"]
    result = subprocess.run(command, cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    (process,) = read_traces(str(folder / "traces"))
    return result, process


def test_torch_does_not_warn_of_the_recorder(recorded):
    # Under `-W error` a warning would end the program.
    result, process = recorded
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert "global hooks" not in result.stderr
    assert not any("global hooks" in row[4] for row in process.totals["warnings"])


def test_a_program_that_leaves_without_atexit_is_recorded_to_its_end(recorded):
    assert recorded[1].ended


def test_a_step_inside_a_step_keeps_both(recorded):
    labels = [row.label for row in recorded[1].rows["step"]]
    assert sorted(labels) == ["Outer", "Outer", "SGD", "SGD"]


def test_tensors_of_torch_func_are_no_error(recorded):
    assert recorded[1].errors == {}
