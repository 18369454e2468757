"""Laws that hold for every rule and case."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import itertools
import re

import pytest

from torchfix_codemods.engine import check
from torchfix_codemods.rule import Category
from torchfix_codemods.source import Span
from torchfix_codemods.transforms import CHAIN

from .collection import CASES, EXECUTED, REWRITES, RULES, findings_in, identify, source_of, view_of

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


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("case", [case for case in REWRITES if not case.contract.unsafe], ids=identify)
def test_safe_means_same_or_an_error_mended(case, device):
    promises = dict(case.contract.on(device).promises)
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


_DEVICES_AND_MEMORY = re.compile(r"cuda|device|memory|map_location|bytes")


def _is_about_devices_or_memory(rule, mine):
    """By its category, by what its contracts observe, or by the lines that it changes."""
    observed = [name for case in mine for name in case.contract.promises]
    sides = [[ast.unparse(ast.parse(path.read_bytes())).splitlines() for path in (case.before, case.after)] for case in mine]
    changed = [line for before, after in sides for line in difflib.ndiff(before, after) if line[0] in "+-"]
    texts = any(_DEVICES_AND_MEMORY.search(text) for text in (*observed, *changed))
    return texts or rule.category in {Category.DEVICES, Category.MEMORY, Category.AMP}


@pytest.mark.parametrize("rule", CHAIN, ids=lambda rule: rule.name)
def test_rules_about_devices_or_memory_have_a_case_for_cuda(rule):
    mine = [case for case in EXECUTED if case.rule == rule.name]
    if _is_about_devices_or_memory(rule, mine):
        assert any("cuda" in case.contract.devices for case in mine)


def test_order_of_rules_does_not_change_findings():
    source = source_of(REWRITES[0].before)
    assert check(source, CHAIN) == check(source, CHAIN[::-1])


def _model(path):
    from torchfix_codemods.model import FileModel

    return FileModel(source_of(path), view=view_of(path))
