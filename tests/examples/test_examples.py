"""The example project, before and after all fixes: it trains, and what the contracts promise shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from torchfix_codemods.transforms import CHAIN

from tests.cli.commands import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def execute(folder, script):
    """What a script prints; it must succeed, on both sides."""
    result = subprocess.run([sys.executable, "-W", "ignore", script], cwd=folder, capture_output=True, check=False, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """Two copies of the project, the second one with all fixes applied."""
    before, after = (tmp_path_factory.mktemp(name) / "examples" for name in ("before", "after"))
    for side in (before, after):
        shutil.copytree(EXAMPLES, side, ignore=shutil.ignore_patterns("*.pt", "__pycache__"))
    assert run("apply", "--unsafe-fixes", ".", cwd=after).returncode == 0
    return before, after


def test_every_rule_has_something_to_fix_here(sides):
    found = run("check", ".", cwd=sides[0]).stdout.decode()
    assert {rule.name for rule in CHAIN if f" {rule.name} " not in found} == set()


def test_nothing_is_left_and_a_second_run_changes_nothing(sides):
    texts = {path.name: path.read_bytes() for path in sides[1].glob("*.py")}
    assert run("check", "--unsafe-fixes", ".", cwd=sides[1]).returncode == 0
    assert run("apply", "--unsafe-fixes", ".", cwd=sides[1]).returncode == 0
    assert {path.name: path.read_bytes() for path in sides[1].glob("*.py")} == texts


def test_cnn_trains_alike_and_what_failed_works(sides):
    before, after = (execute(side, "train_cnn.py") for side in sides)
    numbers = [line for line in before if line.startswith(("Epoch", "Test"))]
    assert after[: len(numbers)] == numbers
    assert "Restoring failed: UnpicklingError" in before
    assert any(line.startswith("Confidence failed: Can't call numpy()") for line in before)
    # The restored model scores what the trained one scored in its last epoch.
    score = numbers[-1].rpartition(" ")[2].partition("/")[0]
    assert f"Restored accuracy {score}" in after
    assert any(line.startswith("Confidence 0.") for line in after)


def test_cnn_weights_load_without_running_code(sides):
    import torch

    execute(sides[1], "train_cnn.py")
    state = torch.load(sides[1] / "cnn.pt", map_location="cpu", weights_only=True)
    assert set(state) >= {"conv.weight", "fc.weight"}


def test_gan_generator_learns_and_stays_in_train_mode(sides):
    before, after = (execute(side, "train_gan.py") for side in sides)
    assert before[-1] == "Steps in train mode 1"
    assert after[-1] == "Steps in train mode 60"
    # The points lie on a circle of radius 2; a generator whose gradients are wiped never gets there.
    last_radius = [float(lines[2].rpartition(" ")[2]) for lines in (before, after)]
    assert abs(last_radius[0] - 2) > 1.5
    assert abs(last_radius[1] - 2) < 0.5


def test_rnn_reports_its_loss_and_its_weights_serve(sides):
    before, after = (execute(side, "train_rnn.py") for side in sides)
    assert all("the loss could not be read" in line for line in before)
    losses = [float(line.split()[3]) for line in after]
    assert losses[1] < losses[0]
    for side in sides:
        assert len(execute(side, "generate.py")[0]) == 41
