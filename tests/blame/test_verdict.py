"""Fixes that build on others, and fixes that are possible only without others."""

from __future__ import annotations

import pytest

from torchfix_codemods.blame.budget import Budget
from torchfix_codemods.blame.rewrites import Rewrites
from torchfix_codemods.blame.trials import Trials
from torchfix_codemods.blame.units import units
from torchfix_codemods.blame.verdict import judged
from torchfix_codemods.rule import Safety
from torchfix_codemods.sandbox import Options, opened
from torchfix_codemods.transforms import CHAIN
from torchfix_codemods.workspace.tasks import RewriteTask

SCRIPT = """import torch
from torch.autograd import Variable


def test(model, loader):
    model.eval()
    for x, y in loader:
        x, y = Variable(x, volatile=True), Variable(y)
        print(model(x), y)
"""
ALL = {("volatile-to-no-grad", 8), ("unwrap-variable", 8)}
ORDER = {rule.name: place for place, rule in enumerate(CHAIN)}


@pytest.fixture
def verdict(tmp_path, monkeypatch):
    """The verdict on the fixes of a script, for a command."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.py").touch()

    def judge(command, script=SCRIPT, budget=60):
        (tmp_path / "a.py").write_text(script)
        task = RewriteTask(lambda: CHAIN, Safety.UNSAFE)
        spending = Budget(budget)
        with opened(["a.py"], Options()) as sandbox:
            trials = Trials(sandbox, command, spending, lambda _: None)
            trials.baseline(allow_red=False)
            return judged([task("a.py")], Rewrites(task, ["a.py"], lambda _: True), trials, spending, ORDER)

    return judge


def named(some):
    return {(unit.rule, unit.places[0][1].line) for unit in some}


def test_all_are_kept(verdict):
    found = verdict("true")
    assert named(found.kept) == ALL
    assert "x, y = x.detach(), y.detach()" in found.results[0].after.decode()
    assert found.runs == 2


def test_what_builds_on_the_guilty_is_left_out_and_what_is_possible_without_it_is_kept(verdict):
    found = verdict("grep -q volatile a.py")
    assert named(blame.unit for blame in found.guilty) == {("volatile-to-no-grad", 8)}
    assert named(found.dependent) == {("unwrap-variable", 8)}
    assert named(found.kept) == {("unwrap-variable", 8), ("eval-missing-no-grad", 9)}
    assert "x, y = Variable(x, volatile=True), y.detach()" in found.results[0].after.decode()


def test_the_fix_that_builds_on_another_is_blamed_and_not_the_other(verdict):
    found = verdict("! grep -q 'x.detach()' a.py")
    assert named(blame.unit for blame in found.guilty) == {("unwrap-variable", 8)}
    assert len(found.guilty) == 1
    assert named(found.kept) == ALL
    assert "x, y = Variable(x), y.detach()" in found.results[0].after.decode()


def test_fixes_of_one_line_are_told_apart(verdict):
    script = "import torch\na = torch.load('a')\nb = a['x'] + 1, torch.nn.Linear(1, 1).load_state_dict(torch.load('b'))\n"
    found = verdict("! grep -q weights_only a.py", script)
    everything = units([RewriteTask(lambda: CHAIN, Safety.UNSAFE)("a.py")])
    assert named(blame.unit for blame in found.guilty) == {("torch-load-weights-only", 3)}
    assert named(found.kept) == named(everything) - {("torch-load-weights-only", 3)}


def test_without_runs_nothing_is_kept(verdict):
    found = verdict("grep -q volatile a.py", budget=2)
    assert (found.kept, found.guilty) == ((), ())
    assert named(found.untried) == ALL
    assert found.results[0].after == found.results[0].before or not found.results[0].after
