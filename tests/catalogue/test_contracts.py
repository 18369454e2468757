"""Contracts hold when the code is executed, and break when it is the wrong code."""

from __future__ import annotations

import pytest

from torchfix_codemods.cli.prove import found, rewritten
from torchfix_codemods.measured import Measured, differences, measured
from torchfix_codemods.verify.command import Tool, text_problem
from torchfix_codemods.verify.interpreter import present
from torchfix_codemods.verify.measure import rows
from torchfix_codemods.verify.sides import execute, obstacle

from .collection import EXECUTED, REWRITES, RULES, identify

TOOL = Tool(rewritten, found)


# Where every promise is equality, only the text tells before from after: no more than these rules may do with that.
PROMISE_NO_CHANGE = {
    "data-read-to-detach",
    "unwrap-variable",
    "dataloader-pin-memory",
    "set-to-none-default",
}


@pytest.mark.parametrize("case", EXECUTED, ids=identify)
def test_contract_holds_on_the_cpu_and_as_documented(case):
    """One execution serves both: `python docs/generate.py` notes what has changed."""
    if other_torch := obstacle(case, "cpu", present()):
        pytest.skip(other_torch)
    verdicts = execute(case, "cpu")
    assert [(v.observation, v.before, v.after, v.breach) for v in verdicts if v.breach] == []
    documented = measured(RULES[case.rule]) or Measured()
    assert differences(documented.of(case.name, "cpu"), rows(case, "cpu", verdicts)) == []


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_text_is_proven_too(case):
    assert text_problem(RULES[case.rule], case, TOOL) == ""


CHANGES = [case for case in EXECUTED if any(not promise.keeps_value for promise in case.contract.on("cpu").promises.values())]


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_text_breaks_for_wrong_code(case):
    assert text_problem(RULES[case.rule], case, TOOL, after=case.before) == "the rewrite is not after.py"


@pytest.mark.parametrize("wrong", ["before", "after"])
@pytest.mark.parametrize("case", CHANGES, ids=identify)
def test_contract_breaks_when_both_sides_are_the_same_code(case, wrong):
    code = case.before if wrong == "before" else case.after
    assert any(verdict.breach for verdict in execute(case, "cpu", before=code, after=code))


@pytest.mark.parametrize("case", CHANGES, ids=identify)
def test_contract_breaks_when_the_sides_are_swapped(case):
    assert any(verdict.breach for verdict in execute(case, "cpu", before=case.after, after=case.before))


@pytest.mark.parametrize("rule", sorted({case.rule for case in EXECUTED}))
def test_some_contract_of_each_rule_promises_a_change(rule):
    assert any(case.rule == rule for case in CHANGES) != (rule in PROMISE_NO_CHANGE)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_executed(rule):
    assert any(case.rule == rule for case in EXECUTED)
