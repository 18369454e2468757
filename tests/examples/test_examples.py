"""The example project, before and after all fixes: it trains, and what the contracts promise shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.commands import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OBSERVE = Path(__file__).with_name("observe.py")
FIXABLE = re.compile(r"^\S+:\d+:\d+: (\S+) .*\[(?:safe|unsafe) fix\]$", re.MULTILINE)
SHOWN = {
    "data-inplace-to-no-grad",
    "data-read-to-detach",
    "eval-missing-eval-mode",
    "eval-missing-no-grad",
    "eval-mode-not-restored",
    "loss-graph-accumulation",
    "nn-init-data-arg",
    "scalar-index-to-item",
    "tensor-to-numpy",
    "torch-load-map-location",
    "whole-model-save-load",
    "zero-grad-missing",
    "zero-grad-wipes-gradients",
}


@dataclass(frozen=True, slots=True)
class Trained:
    """One run of a script: what it printed, what it did, and the folder that it ran in."""

    folder: Path
    lines: list[str]
    forwards: list[dict]
    graphs: list[dict]
    steps: list[dict]
    saved: list[dict]

    def modes(self, function):
        """The pairs (training, gradients recorded) in which a function ran models."""
        return {(f["training"], f["gradients"]) for f in self.forwards if f["function"] == function}

    def graph_nodes(self, function):
        """The sizes of the graphs that hang on what a function returned."""
        return [g["nodes"] for g in self.graphs if g["function"] == function]

    def steps_of(self, optimizer):
        return [s for s in self.steps if s["optimizer"] == optimizer]


def execute(folder, script):
    """Run a script in its folder; it must succeed, on both sides."""
    target = folder / f"{script}.json"
    command = [sys.executable, "-W", "ignore", OBSERVE, folder / script, target]
    result = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)
    assert result.returncode == 0, result.stderr
    return Trained(folder, result.stdout.splitlines(), **json.loads(target.read_text()))


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """Two copies of the project, the second one with all fixes applied."""
    before, after = (tmp_path_factory.mktemp(name) / "examples" for name in ("before", "after"))
    for side in (before, after):
        shutil.copytree(EXAMPLES, side, ignore=shutil.ignore_patterns("*.pt", "__pycache__"))
    assert run("apply", "--unsafe-fixes", ".", cwd=after).returncode == 0
    return before, after


@pytest.fixture(scope="module")
def cnn(sides):
    return tuple(execute(side, "train_cnn.py") for side in sides)


@pytest.fixture(scope="module")
def gan(sides):
    return tuple(execute(side, "train_gan.py") for side in sides)


@pytest.fixture(scope="module")
def rnn(sides):
    return tuple(execute(side, "train_rnn.py") for side in sides)


def test_thirteen_rules_have_something_to_fix_here(sides):
    found = run("check", "--unsafe-fixes", ".", cwd=sides[0]).stdout.decode()
    assert set(FIXABLE.findall(found)) >= SHOWN


def test_nothing_is_left_and_a_second_run_changes_nothing(sides):
    texts = {path.name: path.read_bytes() for path in sides[1].glob("*.py")}
    assert run("check", "--unsafe-fixes", ".", cwd=sides[1]).returncode == 0
    assert run("apply", "--unsafe-fixes", ".", cwd=sides[1]).returncode == 0
    assert {path.name: path.read_bytes() for path in sides[1].glob("*.py")} == texts


def test_cnn_trains_alike(cnn):
    before, after = cnn
    numbers = [line for line in before.lines if line.startswith(("Epoch", "Test"))]
    assert len(numbers) == 4
    assert after.lines[:4] == numbers
    assert after.steps == before.steps
    assert len(after.steps) == 32
    assert after.saved[0]["digest"] == before.saved[0]["digest"]


def test_cnn_keeps_no_graph_of_its_losses(cnn):
    before, after = cnn
    assert min(before.graph_nodes("train")) > 100
    assert after.graph_nodes("train") == [0, 0]


def test_cnn_evaluation_records_no_gradients(cnn):
    before, after = cnn
    assert (before.modes("test"), after.modes("test")) == ({(False, True)}, {(False, False)})
    assert before.modes("train") == after.modes("train") == {(True, True)}


def test_cnn_is_saved_as_weights_and_restored(cnn):
    import torch

    before, after = cnn
    assert (before.saved[0]["type"], after.saved[0]["type"]) == ("Net", "OrderedDict")
    assert "Restoring failed: UnpicklingError" in before.lines
    # The restored model scores what the trained one scored in its last epoch.
    score = after.lines[3].rpartition(" ")[2].partition("/")[0]
    assert f"Restored accuracy {score}" in after.lines
    state = torch.load(after.folder / "cnn.pt", map_location="cpu", weights_only=True)
    assert set(state) >= {"conv.weight", "fc.weight"}


def test_cnn_confidence_is_computed(cnn):
    before, after = cnn
    assert before.lines[-1].startswith("Confidence failed: Can't call numpy()")
    assert 0 < float(after.lines[-1].removeprefix("Confidence ")) <= 1


def test_gan_generator_gets_its_gradients(gan):
    before, after = gan
    # Equal up to the critic's first step: the rewritten initialisation draws the same weights.
    assert after.steps[0] == before.steps[0]
    assert [step["moved"] for step in before.steps_of(1)] == [False] * 60
    assert [step["moved"] for step in after.steps_of(1)] == [True] * 60
    # The points to learn lie on a circle of radius 2; a generator that never moves stays far away.
    distance = [abs(float(side.lines[2].rpartition(" ")[2]) - 2) for side in gan]
    assert distance[1] < distance[0] / 2


def test_gan_stays_in_train_mode(gan):
    before, after = gan
    assert before.lines[-1] == "Steps in train mode 1"
    assert after.lines[-1] == "Steps in train mode 60"
    assert before.modes("sample") == after.modes("sample") == {(False, False)}
    assert (before.modes("main"), after.modes("main")) == ({(True, True), (False, True)}, {(True, True)})


def test_rnn_clears_its_gradients(rnn):
    before, after = rnn
    assert after.steps[0] == before.steps[0]
    assert after.steps[1]["gradients"] != before.steps[1]["gradients"]
    correct = [int(re.search(r"correct (\d+)", side.lines[-1])[1]) for side in rnn]
    assert correct[1] > correct[0]


def test_rnn_reports_its_loss_and_keeps_no_graph(rnn):
    before, after = rnn
    assert all("the loss could not be read" in line for line in before.lines)
    losses = [float(line.split()[3]) for line in after.lines]
    assert losses[1] < losses[0]
    assert min(before.graph_nodes("train_epoch")) > 1000
    assert after.graph_nodes("train_epoch") == [0, 0]


def test_rnn_is_evaluated_without_dropout_and_trained_with_it(rnn):
    before, after = rnn
    assert (before.modes("evaluate"), after.modes("evaluate")) == ({(True, False)}, {(False, False)})
    assert before.modes("train_epoch") == after.modes("train_epoch") == {(True, True)}


def test_same_weights_write_the_same_text(sides, rnn, tmp_path):
    written = []
    for name, side in zip(("before", "after"), sides, strict=True):
        folder = tmp_path / name
        folder.mkdir()
        for file in (side / "generate.py", side / "synthetic.py", rnn[1].folder / "rnn.pt"):
            shutil.copy(file, folder)
        written.append(execute(folder, "generate.py"))
    before, after = written
    assert len(after.lines[0]) == 41
    assert after.lines == before.lines
    assert (before.modes("main"), after.modes("main")) == ({(False, True)}, {(False, False)})
