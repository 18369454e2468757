"""Fixes that belong together in several files."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .commands import run

MODELS = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.fc = nn.Linear(n, 2)\n"
TRAIN = "import torch\n\nfrom models import Net\n\nmodel = Net(3)\ntorch.save(model, 'net.pt')\n"
SERVE = "import torch\n\nimport models\n\nnet = torch.load('net.pt').eval()\nprint(net.fc.weight.shape, net.training)\n"
TRAIN_AFTER = TRAIN.replace("save(model,", "save(model.state_dict(),")
SERVE_AFTER = SERVE.replace(
    "net = torch.load('net.pt').eval()\n",
    "net = models.Net(3)\nnet.load_state_dict(torch.load('net.pt', map_location='cpu', weights_only=True))\nnet.eval()\n",
)
RULE = ["--unsafe-fixes", "--select", "whole-model-save-load"]


@pytest.fixture
def project(tmp_path):
    def write(**files):
        for name, text in {"models": MODELS, "train": TRAIN, "serve": SERVE, **files}.items():
            (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / "pyproject.toml").touch()
        return tmp_path

    return write


def texts(folder):
    return (folder / "train.py").read_text(), (folder / "serve.py").read_text()


def python(folder, script):
    return subprocess.run([sys.executable, script], cwd=folder, capture_output=True, check=False, text=True)


def test_both_halves_are_changed_and_work_together(project):
    folder = project()
    assert python(folder, "train.py").returncode == 0
    assert "UnpicklingError" in python(folder, "serve.py").stderr
    assert run("apply", *RULE, ".", cwd=folder).returncode == 0
    assert texts(folder) == (TRAIN_AFTER, SERVE_AFTER)
    assert python(folder, "train.py").returncode == 0
    assert python(folder, "serve.py").stdout == "torch.Size([2, 3]) False\n"
    assert run("apply", *RULE, ".", cwd=folder).stdout.decode().startswith("Nothing to fix")


@pytest.mark.parametrize(
    ("imports", "load"), [("import torch as th\n\nimport models", "th.load"), ("import models\nfrom torch import load", "load")]
)
def test_a_half_under_another_name_is_found(project, imports, load):
    folder = project(serve=SERVE.replace("import torch\n\nimport models", imports).replace("torch.load", load))
    assert run("apply", *RULE, ".", cwd=folder).returncode == 0
    train, serve = texts(folder)
    assert train == TRAIN_AFTER
    assert f"net.load_state_dict({load}('net.pt', map_location='cpu', weights_only=True))" in serve


@pytest.mark.parametrize("named", ["train.py", "serve.py"])
def test_one_half_alone_is_left_as_it_is(project, named):
    folder = project()
    result = run("diff", *RULE, named, cwd=folder)
    assert result.stdout == b""
    assert b"aren't part of this run" in result.stderr
    assert run("apply", *RULE, named, cwd=folder).returncode == 1
    assert texts(folder) == (TRAIN, SERVE)


@pytest.mark.skipif(os.name != "posix", reason="hard links")
def test_a_half_that_cannot_be_written_keeps_the_other(project):
    folder = project()
    os.link(folder / "serve.py", folder / "copy")
    run("apply", *RULE, ".", cwd=folder)
    assert texts(folder) == (TRAIN, SERVE)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"serve": SERVE.replace("import models\n", "import other\n")}, "`Net` isn't imported where it is loaded in serve.py, line 5"),
        (
            {"serve": "import torch\nimport models\nprint(torch.load('net.pt'))\n"},
            "a load in serve.py, line 3 is part of a larger expression",
        ),
        ({"train": TRAIN.replace("Net(3)", "Net(n)").replace("model =", "n = int(input())\nmodel =")}, "arguments aren't known"),
        ({"train": TRAIN.replace("Net(3)", "Net(3).to(device)").replace("model =", "device = 'cuda'\nmodel =")}, "the device it was on"),
        ({"serve": SERVE.replace("net.pt", "other.pt")}, "no load of this path is shown in this project"),
        ({"models": MODELS + "        self.best = None\n\n    def forward(self, x):\n        self.best = x\n"}, "keeps state"),
        ({"export": TRAIN}, "several saves write this path"),
        ({"serve": SERVE.replace("'net.pt'", "'net.pt', mmap=True")}, "has options of its own"),
    ],
)
def test_what_stands_against_it_is_told_precisely(project, files, says):
    folder = project(**files)
    before = texts(folder)
    result = run("diff", *RULE, ".", cwd=folder)
    assert result.stdout == b""
    assert says in result.stderr.decode()
    assert texts(folder) == before


def test_a_path_from_a_shared_constant(project):
    folder = project(
        config="CHECKPOINT = 'net.pt'\n",
        train=TRAIN.replace("'net.pt'", "CHECKPOINT").replace("import torch\n", "import torch\nfrom config import CHECKPOINT\n"),
        serve=SERVE.replace("'net.pt'", "config.CHECKPOINT").replace("import torch\n", "import config\nimport torch\n"),
    )
    assert run("apply", *RULE, ".", cwd=folder).returncode == 0
    assert python(folder, "train.py").returncode == 0
    assert python(folder, "serve.py").stdout == "torch.Size([2, 3]) False\n"


def test_the_result_does_not_depend_on_the_number_of_jobs(project):
    folder = project(**{f"module_{i}": f"import torch\nfrom models import Net\nx = Net({i})\n" for i in range(150)})
    diffs = {run("diff", *RULE, "--jobs", jobs, ".", cwd=folder).stdout for jobs in ("1", "2", "5")}
    assert len(diffs) == 1
    assert next(iter(diffs)).count(b"\n--- a/") + next(iter(diffs)).startswith(b"--- a/") == 2
