"""Which changes are promised, which follow, and which are regressions."""

from __future__ import annotations

import pytest

from tests.verify.traces import TEST, ended, fix, forwards, losses, raised, run, steps, verdicts
from torchfix_codemods.effects import (
    CLEARS_GRADIENTS,
    RAISES_LESS,
    RECORDS_NO_GRADIENTS,
    RUNS_IN_EVAL_MODE,
    RUNS_IN_TRAIN_MODE,
    replaces,
)
from torchfix_codemods.rule import Safety

MODE, LOSS = ("mode at forward", "Net"), ("values", "loss")


def test_a_mode_is_promised_in_the_function_of_the_fix():
    before, after = (run(forwards=[forwards(TEST, training=training)]) for training in (True, False))
    assert verdicts(before, after, fix(RUNS_IN_EVAL_MODE, function="test")) == {MODE: "promised"}
    assert verdicts(before, after, fix(RUNS_IN_EVAL_MODE, function="train")) == {MODE: "regression"}
    assert verdicts(before, after, fix(RUNS_IN_TRAIN_MODE, function="test")) == {MODE: "regression"}


def test_a_fix_that_is_not_run_explains_nothing():
    before, after = (run(forwards=[forwards(TEST, training=training)]) for training in (True, False))
    assert verdicts(before, after, fix(RUNS_IN_EVAL_MODE, function="test", reached=False)) == {MODE: "regression"}


def test_what_a_fixed_function_calls_belongs_to_it():
    within = (*TEST, "model.py:Net.predict")
    before, after = (run(forwards=[forwards(within, gradients=on)]) for on in (True, False))
    assert verdicts(before, after, fix(RECORDS_NO_GRADIENTS, function="test")) == {("gradients at forward", "Net"): "promised"}


@pytest.mark.parametrize(("safety", "kind"), [(Safety.SAFE, "regression"), (Safety.UNSAFE, "promised")])
def test_values_change_by_unsafe_fixes_only(safety, kind):
    assert verdicts(run(losses(1.0)), run(losses(2.0)), fix(safety=safety)) == {LOSS: kind}


@pytest.mark.parametrize("safety", [Safety.SAFE, Safety.UNSAFE])
def test_steps_that_are_gone_are_a_regression(safety):
    found = verdicts(run(losses(1.0), steps=[steps(4)]), run(losses(1.0), steps=[steps(2)]), fix(CLEARS_GRADIENTS, safety=safety))
    assert found == {("optimizer steps", "SGD"): "regression"}


def test_stale_gradients():
    before, after = run(steps=[steps(4, stale=3)]), run(steps=[steps(4, stale=0)])
    key = ("steps with stale gradients", "SGD")
    assert verdicts(before, after, fix(CLEARS_GRADIENTS)) == {key: "promised"}
    assert verdicts(before, after, fix()) == {key: "better"}
    assert verdicts(after, before, fix(CLEARS_GRADIENTS)) == {key: "regression"}


def test_modules_that_come_and_go_are_named_by_the_rule():
    before, after = run(forwards=[forwards(), forwards(module="Net.out: Softmax")]), run(forwards=[forwards()])
    key = ("forwards", "Net.out: Softmax")
    assert verdicts(before, after, fix(replaces("Softmax"))) == {key: "promised"}
    assert verdicts(before, after, fix(replaces("Sigmoid"))) == {key: "regression"}


def test_a_program_goes_on_where_it_raised():
    before = run(ended("IndexError"), ending="exit 1", steps=[steps(1)], **raised("IndexError"))
    after = run(steps=[steps(4)], output="done")
    assert verdicts(before, after, fix(RAISES_LESS)) == {
        ("exceptions", "IndexError"): "promised",
        ("outcome", "ends with"): "promised",
        ("outcome", "command"): "promised",
        ("optimizer steps", "SGD"): "follows",
        ("printed text", "text"): "follows",
    }


def test_going_on_is_no_excuse_for_less():
    before = run(steps=[steps(4)], forwards=[forwards()], **raised("IndexError"))
    after = run(steps=[steps(4)])
    assert verdicts(before, after, fix(RAISES_LESS))["forwards", "Net"] == "regression"


def test_a_new_exception_is_one_regression_and_the_rest_follows():
    before = run(steps=[steps(4)], output="done", **raised("KeyError"))
    after = run(ended("TypeError"), ending="exit 1", **raised("TypeError"))
    found = verdicts(before, after, fix(RAISES_LESS))
    assert found.pop(("outcome", "ends with")) == "regression"
    assert found.pop(("exceptions", "KeyError")) == "promised"
    assert set(found.values()) == {"follows"}
    assert len(found) == 4


def test_a_program_that_failed_before_may_fail_further_on():
    before = run(ended("IndexError"), ending="exit 1", **raised("IndexError"))
    after = run(ended("KeyError", "later"), ending="exit 1", **raised("KeyError", "later"))
    assert "regression" not in verdicts(before, after, fix(RAISES_LESS)).values()


def test_a_new_exception_that_the_program_catches_is_a_regression():
    assert verdicts(run(), run(**raised("TypeError")), fix(RAISES_LESS, safety=Safety.UNSAFE)) == {
        ("exceptions", "TypeError"): "regression"
    }


def test_other_values_let_a_program_print_and_save_otherwise_but_not_stop_saving():
    before = run(losses(1.0), output="new best", warnings=[])
    after = run(losses(2.0), output="worse")
    assert verdicts(before, after, fix(safety=Safety.UNSAFE)) == {LOSS: "promised", ("printed text", "text"): "follows"}
    assert verdicts(run(output="a"), run(output="b"), fix(safety=Safety.UNSAFE)) == {("printed text", "text"): "regression"}
