"""Contracts hold when the code is executed, and break when it is the wrong code."""

from __future__ import annotations

import pytest

from torchfix_codemods.cli.prove import found, rewritten
from torchfix_codemods.verify.command import Tool, execute, text_problem

from .collection import REWRITES, RULES, identify

TOOL = Tool(rewritten, found)


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_contract_holds_on_the_cpu(case):
    verdicts = execute(case, "cpu")
    assert verdicts
    assert [(v.observation, v.before, v.after, v.breach) for v in verdicts if v.breach] == []


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_text_is_proven_too(case):
    assert text_problem(RULES[case.rule], case, TOOL) == ""


CHANGES = [case for case in REWRITES if any(not promise.keeps_value for promise in case.contract.promises.values())]


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


@pytest.mark.parametrize("rule", RULES)
def test_a_contract_without_a_change_is_left_to_rules_that_promise_none(rule):
    """Where every promise is equality, only the text tells before from after: no more than the rules named here may do with that."""
    mine = [case for case in REWRITES if case.rule == rule]
    assert any(case in CHANGES for case in mine) != (rule == "data-read-to-detach")
