"""Laws that hold for every rule and case."""

from __future__ import annotations

import ast
import dataclasses
import itertools

import pytest

from torchfix_codemods.engine import check
from torchfix_codemods.source import Span
from torchfix_codemods.transforms import CHAIN

from .collection import CASES, REWRITES, RULES, findings_in, identify, source_of, view_of

# What a safe rewrite may change: memory, graphs and version counters are no values that a program computes with.
_POINT_OF_THE_RULE = {
    "saved bytes",
    "peak memory",
    "graph nodes",
    "writes counted",
    "tracked",
    "warnings",
    "alive when emptied",
    "reserved memory",
}


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
def test_statements_that_no_edit_names_stay_byte_for_byte(case):
    spans = [span for finding in findings_in(RULES[case.rule], case.before) for edit in finding.edits for span in _spans(edit)]
    assert spans
    untouched = [text for start, end, text in _statements(case.before) if not any(start <= span.start < end for span in spans)]
    remaining = iter([text for _, _, text in _statements(case.after)])
    assert [text for text in untouched if text not in remaining] == []


def _spans(edit):
    """The places that an edit names, whatever its kind."""
    for field in dataclasses.fields(edit):
        value = getattr(edit, field.name)
        places = [value] if isinstance(value, Span) else value if isinstance(value, tuple) else []
        yield from (place for place in places if isinstance(place, Span))


def _statements(path):
    """Start, end and bytes of each statement at top level."""
    lines = path.read_bytes().splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]
    for node in ast.parse(b"".join(lines)).body:
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        yield starts[first - 1], starts[node.end_lineno], b"".join(lines[first - 1 : node.end_lineno])


def test_order_of_rules_does_not_change_findings():
    source = source_of(REWRITES[0].before)
    assert check(source, CHAIN) == check(source, CHAIN[::-1])


def _model(path):
    from torchfix_codemods.model import FileModel

    return FileModel(source_of(path), view=view_of(path))
