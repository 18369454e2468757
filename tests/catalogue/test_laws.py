"""Laws that hold for every rule and case."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.engine import check
from torchfix_codemods.transforms import CHAIN

from .collection import CASES, REWRITES, RULES, findings_in, identify, source_of

# What a safe rewrite may change: memory, graphs and version counters are no values that a program computes with.
_POINT_OF_THE_RULE = {"saved bytes", "peak memory", "graph nodes", "writes counted", "tracked"}


@pytest.mark.parametrize("case", [case for case in REWRITES if not case.contract.unsafe], ids=identify)
def test_safe_means_same_or_an_error_mended(case):
    promises = dict(case.contract.promises)
    mends_error = promises["raises"].before not in (promises["raises"].after, "nothing") and promises["raises"].after == "nothing"
    for name, promise in promises.items():
        if name not in _POINT_OF_THE_RULE and name != "raises":
            assert promise.keeps_value or mends_error, name
    assert mends_error or promises["raises"].keeps_value


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_needles_never_hide_a_finding(case):
    rule = RULES[case.rule]
    unfiltered = list(rule.find(_model(case.before)))
    assert len(unfiltered) == len(findings_in(rule, case.before))


@pytest.mark.parametrize("rule", CHAIN, ids=lambda rule: rule.name)
def test_find_keeps_no_state(rule):
    mine = [case.before for case in CASES if case.rule == rule.name]
    first = [findings_in(rule, path) for path in mine]
    backwards = [findings_in(rule, path) for path in reversed(mine)]
    assert first == backwards[::-1]
    assert vars(rule) == {}


@pytest.mark.parametrize("case", REWRITES, ids=identify)
def test_bytes_outside_the_changed_lines_stay(case):
    before, after = case.before.read_bytes().split(b"\n"), case.after.read_bytes().split(b"\n")
    findings = findings_in(RULES[case.rule], case.before)
    assert findings
    first = min(finding.position.line for finding in findings)
    functions = [node for node in ast.walk(ast.parse(case.before.read_text())) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    start = min([first, *(f.lineno for f in functions if f.lineno <= first <= f.end_lineno)])
    untouched = start - 1 - any(line.startswith((b"import ", b"from ")) for line in set(after) - set(before)) * (start - 1)
    assert before[:untouched] == after[:untouched]


def test_order_of_rules_does_not_change_findings():
    source = source_of(REWRITES[0].before)
    assert check(source, CHAIN) == check(source, CHAIN[::-1])


def _model(path):
    from torchfix_codemods.model import FileModel

    return FileModel(source_of(path))
