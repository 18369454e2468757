"""A training that no longer learns is noticed, and the rules that broke it are named."""

from __future__ import annotations

import sys

from tests.cli.commands import run
from tests.packs import WRONG_RULES, with_pack

TRAIN = """import torch
from torch import nn


def fit(steps):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(8, 2), torch.zeros(8, 1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.data[0]
"""
RULES = "scalar-index-to-item,drop-optimizer-step,return-early"


def test_wrong_rules_are_blamed(tmp_path):
    (tmp_path / "setup.py").touch()
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "check.py").write_text(
        "import torch\nimport train\n"
        "index = torch.Tensor.__getitem__\n"
        "# As torch 0.3 had it: a loss with one dimension.\n"
        "torch.Tensor.__getitem__ = lambda self, key: self if self.dim() == 0 else index(self, key)\n"
        "assert float(train.fit(20)) < float(train.fit(1)) / 2, 'nothing was learnt'\n"
    )
    command = f"{sys.executable} check.py"
    result = run("apply", "--select", RULES, "--verify-with", command, ".", cwd=tmp_path, environment=with_pack(WRONG_RULES))
    out = result.stdout.decode()
    assert result.returncode == 1, result.stderr
    assert (tmp_path / "train.py").read_text() == TRAIN.replace("loss.data[0]", "loss.item()")
    assert "passes with 1 of 3 fixes" in out
    assert "train.py:14: drop-optimizer-step: exit 1" in out
    assert "    AssertionError: nothing was learnt" in out
    assert "train.py:6: return-early: exit 1" in out
