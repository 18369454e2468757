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


@pytest.mark.parametrize("wrong", ["before as after", "after as before"])
@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_contract_breaks_for_a_wrong_pairing(case, wrong):
    code = case.before if wrong == "before as after" else case.after
    broken_text = text_problem(RULES[case.rule], case, TOOL, after=case.before)
    assert broken_text == "the rewrite is not after.py"
    promises_change = any(not promise.keeps_value for promise in case.contract.promises.values())
    if promises_change and (wrong == "before as after" or _old_code_matters(case)):
        verdicts = execute(case, "cpu", before=code, after=code)
        assert any(verdict.breach for verdict in verdicts)


def _old_code_matters(case) -> bool:
    """Whether a promise is about the old code: one about the new code alone is kept by the new code on both sides."""
    return any(
        promise.relation in {"less", "more"} or isinstance(promise.before, (bool, int, float, str, list))
        for promise in case.contract.promises.values()
    )
