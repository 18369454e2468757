"""Every case: what the rule must rewrite, report, or leave alone."""

from __future__ import annotations

import pytest

from torchfix_codemods.engine import rewrite
from torchfix_codemods.rule import Safety
from torchfix_codemods.transforms import CHAIN

from .collection import CASES, FIXTURES, REWRITES, RULES, findings_in, fixed, identify, source_of, view_of


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_rewrite_is_after(case):
    assert fixed(RULES[case.rule], case.before).decode() == case.after.read_text()


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_safety_is_what_the_contract_says(case):
    safely = fixed(RULES[case.rule], case.before, minimum=Safety.SAFE) == case.after.read_bytes()
    assert safely != case.contract.unsafe


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_rewriting_again_changes_nothing(case):
    assert fixed(RULES[case.rule], case.after) == case.after.read_bytes()


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_the_rule_has_nothing_left_to_fix(case):
    assert [finding for finding in findings_in(RULES[case.rule], case.after) if finding.edits] == []


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_the_whole_chain_comes_to_rest(case):
    once = rewrite(source_of(case.before), CHAIN, Safety.UNSAFE, view_of(case.before))
    again = rewrite(source_of(case.before, once.data), CHAIN, Safety.UNSAFE, view_of(case.before))
    assert again.data == once.data
    assert again.fixed == ()


@pytest.mark.parametrize("case", [case for case in CASES if not case.is_rewrite], ids=identify)
def test_refusals_are_silent_and_reports_are_made(case):
    findings = findings_in(RULES[case.rule], case.before)
    assert [finding for finding in findings if finding.edits] == []
    assert [finding.position.line for finding in findings] == [report.line for report in case.reports]
    for finding, report in zip(findings, case.reports, strict=True):
        assert report.says in finding.message


@pytest.mark.parametrize("case", [case for case in CASES if case.reports and case.after], ids=identify)
def test_advice_that_is_followed_ends_the_reports(case):
    assert findings_in(RULES[case.rule], case.after) == ()


@pytest.mark.parametrize("rule", CHAIN, ids=lambda rule: rule.name)
def test_more_refusals_than_rewrites(rule):
    mine = [case for case in CASES if case.rule == rule.name]
    acts = sum(bool(case.reports) if rule.safety is Safety.REPORT else case.is_rewrite for case in mine)
    assert acts >= 2
    assert len(mine) - acts > acts


def test_every_folder_of_fixtures_has_its_rule():
    assert {folder.name for folder in FIXTURES.iterdir() if folder.is_dir()} == set(RULES)
