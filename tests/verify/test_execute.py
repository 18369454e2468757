"""Sides run on their own: whatever the code of one does, the other and this process never see it."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

import pytest

from torchfix_codemods.verify.case import Case
from torchfix_codemods.verify.child import in_child
from torchfix_codemods.verify.contract import Contract
from torchfix_codemods.verify.interpreter import present

HARNESS = """
import random
import torch
def observe(program, device):
    return program.load().run(device)
def as_script(program, device):
    return {"printed": program.run()}
"""


@pytest.fixture
def side(tmp_path):
    """Runs a text as one side of a case."""

    def run(code, name="any", seed=0, timeout=60.0):
        (tmp_path / "harness.py").write_text(HARNESS)
        (tmp_path / "code.py").write_text(code)
        case = Case("some-rule", name, tmp_path / "harness.py", tmp_path / "code.py", contract=Contract({}, seed=seed))
        return present().observe(case, tmp_path / "code.py", "cpu", timeout)

    return run


def test_observations_become_plain_values(side):
    seen = side(
        "import torch\ndef run(device):\n    return {'t': torch.tensor([1.5]), 'l': (1, [True]), 'd': {3: None}, 'o': range(2), 'n': float('inf')}"
    )
    assert seen.failure == ""
    assert seen.observations == {"raises": "nothing", "t": [1.5], "l": [1, [True]], "d": {"3": None}, "o": "range(0, 2)", "n": float("inf")}


def test_what_the_code_raises_is_an_observation(side):
    assert side("def run(device):\n    return [][0]").observations == {"raises": "IndexError"}
    assert side("def run(device:\n").observations == {"raises": "SyntaxError"}


def test_scripts_run_as_main_in_a_folder_of_their_own(side):
    seen = side("import os\nopen('left.txt', 'w').close()\nprint(__name__, os.listdir('.'))", name="as_script")
    assert seen.observations["printed"] == "__main__ ['left.txt']\n"
    assert not Path("left.txt").exists()


@pytest.mark.parametrize("draw", ["torch.rand(3).tolist()", "random.random()"])
def test_same_seed_same_numbers(side, draw):
    code = f"import random, torch\ndef run(device):\n    return {{'x': {draw}}}"
    first, second, other = side(code, seed=1), side(code, seed=1), side(code, seed=2)
    assert first == second
    assert first.observations != other.observations


def test_the_cpu_is_a_machine_without_a_gpu(side):
    seen = side("import torch\ndef run(device):\n    return {'cuda': torch.cuda.is_available(), 'device': device}")
    assert seen.observations == {"raises": "nothing", "cuda": False, "device": "cpu"}


def test_a_side_that_is_late_says_so(side):
    assert side("import time\ndef run(device):\n    time.sleep(60)", timeout=1.0).failure == "took more than 1 seconds"


def test_a_side_that_dies_says_how(side):
    assert (
        side("import os, signal\ndef run(device):\n    os.kill(os.getpid(), signal.SIGTERM)").failure == "the process ended with status -15"
    )


def test_a_side_that_leaves_the_interpreter_says_so(side):
    assert "SystemExit: 3" in side("import sys\ndef run(device):\n    sys.exit(3)").failure


def test_state_of_one_side_never_reaches_the_next(side):
    change = "import torch\ndef run(device):\n    torch.set_grad_enabled(False); torch.set_default_dtype(torch.float64); return {}"
    look = "import torch\ndef run(device):\n    return {'grad': torch.is_grad_enabled(), 'type': str(torch.get_default_dtype())}"
    assert side(change).observations == {"raises": "nothing"}
    assert side(look).observations == {"raises": "nothing", "grad": True, "type": "torch.float32"}


def test_processes_that_a_child_started_end_with_it():
    reader, writer = os.pipe()

    def start():
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        return {"started": True}

    seen = in_child(start, 30)
    os.close(writer)
    assert seen.observations == {"started": True}
    # The pipe ends when nobody holds its other side any more.
    assert select.select([reader], [], [], 10)[0] == [reader]
    assert os.read(reader, 1) == b""
    os.close(reader)
