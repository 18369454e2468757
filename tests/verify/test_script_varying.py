"""What differs from run to run without any fix is told apart from what the fixes do."""

from __future__ import annotations

import pytest

from tests.verify.traces import ended, fix, raised, run, verdicts
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.verify.changes import changes
from torchfix_codemods.verify.judgement import judge
from torchfix_codemods.verify.script import without
from torchfix_codemods.verify.trace import Place, Row


def warned(text):
    return run(warnings=[["train.py", "train", 11, "UserWarning", text, 1]])


def saved(*names):
    return run({"save": [Row(Place("train.py", "train", 11), name, 1, {"kind": "state dict"}) for name in names]})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (warned("took 0.0037 s"), warned("took 12.5 s")),
        (warned("<object at 0x7ff7e38160a0> is odd"), warned("<object at 0x7f3009c9e570> is odd")),
        (run(output="<object at 0x7ff7e38160a0>"), run(output="<object at 0x7f3009c9e570>")),
    ],
)
def test_times_and_addresses_are_no_change(first, second):
    assert changes(first, second) == []


def test_names_that_are_new_in_each_run_are_not_judged():
    judged = judge(changes(saved("a/model.pt"), saved("b/model.pt")), [fix()])
    assert {j.kind.value for j in judged} == {"regression"}
    assert without(changes(saved("a/model.pt"), saved("c/model.pt")), judged) == ()


def test_what_only_the_fixes_do_not_save_stays_a_regression():
    judged = judge(changes(saved("model.pt"), saved()), [fix()])
    assert len(without([], judged)) == 1
    assert len(without(changes(saved("model.pt"), saved("model.pt", "log.pt")), judged)) == 1


def test_the_same_exception_in_another_function_is_another_ending():
    before = run(ended("IndexError"), ending="exit 1", **raised("IndexError"))
    after = run(ended("IndexError", "test"), ending="exit 1", **raised("IndexError", "test"))
    assert "regression" not in verdicts(before, after, fix(RAISES_LESS)).values()


def test_the_same_exception_earlier_is_a_regression():
    before = run(ended("IndexError", "test"), ending="exit 1", **raised("IndexError", "test"))
    after = run(ended("IndexError"), ending="exit 1", **raised("IndexError"))
    assert verdicts(before, after, fix())["outcome", "ends with"] == "regression"


def test_success_is_owed_to_the_fix_of_the_exception():
    before = run(ended("IndexError"), ending="exit 1", **raised("IndexError"))
    guard = fix(RAISES_LESS, rule="other-rule", function="<module>")
    # "ends with" happens in `train`: the fix there is the one.
    judged = judge(changes(before, run()), [fix(RAISES_LESS, rule="guilty-rule"), guard])
    assert {j.rules for j in judged if j.change.key.label == "command"} == {("guilty-rule",)}
