"""Prove rules: execute their cases, and print one row for each observation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..output.table import print_table
from ..output.text import count
from .case import Case, FixtureError, cases
from .contract import Side, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ..rule import Rule

_WIDTH = 34


@dataclass(frozen=True, slots=True)
class Tool:
    """What a proof needs of the tool: rewriting a text by one rule, and listing what the rule finds in it."""

    rewrite: Callable[[Rule, Path, bool], bytes]
    """The new bytes of a file; the flag allows unsafe fixes."""
    findings: Callable[[Rule, Path], list[tuple[int, str, bool]]]
    """Line, message and whether a fix is offered, for each finding."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    rule: str
    case: str
    device: str
    observation: str
    before: str
    after: str
    promised: str
    verdict: str


def run(rules: Sequence[Rule], device: str, fixtures: Path, tool: Tool) -> int:
    """Prove the rules on the devices that are there; 1 when a promise is broken, 2 when a fixture can't be read."""
    try:
        rows = [row for rule in rules for row in _prove(rule, device, fixtures, tool)]
    except FixtureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    columns = ("rule", "case", "device", "observation", "before", "after", "promised", "verdict")
    print_table(columns, [tuple(getattr(row, name) for name in columns) for row in rows])
    breaches = sum(row.verdict.startswith("BREACH") for row in rows)
    unverified = sum(row.verdict == "not verified" for row in rows)
    held = sum(row.verdict == "holds" for row in rows)
    print(f"{count(held, 'promise')} kept, {breaches} broken, {unverified} not verified.")
    return 1 if breaches else 0


def _prove(rule: Rule, device: str, fixtures: Path, tool: Tool) -> Iterator[Row]:
    found = cases(fixtures, rule.name)
    if not found:
        yield Row(rule.name, "", "", "cases", "", "", "at least one", "BREACH: the rule has no fixtures")
    for case in found:
        if case.is_rewrite:
            yield _text_row(rule, case, tool)
        if case.contract:
            yield from _executed(case, device)
    yield from _counted(rule, "refusal", "silent", [case for case in found if case.is_refusal], tool)
    yield from _counted(rule, "report", "made", [case for case in found if case.reports], tool)


def _text_row(rule: Rule, case: Case, tool: Tool) -> Row:
    problem = text_problem(rule, case, tool)
    what = "text of the rewrite" if case.is_rewrite else "reports" if case.reports else "silence"
    return Row(rule.name, case.name, "", what, "", "", "", f"BREACH: {problem}" if problem else "holds")


def _counted(rule: Rule, noun: str, outcome: str, found: list[Case], tool: Tool) -> Iterator[Row]:
    """One row for each case that is wrong, and one for all that are right."""
    rows = [_text_row(rule, case, tool) for case in found]
    yield from (row for row in rows if row.verdict != "holds")
    right = sum(row.verdict == "holds" for row in rows)
    if right:
        yield Row(rule.name, count(right, noun), "", outcome, "", "", "", "holds")


def text_problem(rule: Rule, case: Case, tool: Tool, after: Path | None = None) -> str:
    """What is wrong with what the tool does to a case's text; empty when it is right."""
    findings = tool.findings(rule, case.before)
    if not case.is_rewrite:
        return _silence_problem(case, findings)
    assert case.contract is not None
    expected = (after or case.after or case.before).read_bytes()
    if tool.rewrite(rule, case.before, True) != expected:
        return "the rewrite is not after.py"
    if case.after and tool.rewrite(rule, case.after, True) != expected:
        return "a second rewrite changes the code again"
    fixed_safely = tool.rewrite(rule, case.before, False) == expected
    if fixed_safely == case.contract.unsafe:
        return "fixed as safe, but the contract says unsafe" if fixed_safely else "not fixed as safe"
    return ""


def _silence_problem(case: Case, findings: list[tuple[int, str, bool]]) -> str:
    if any(fixable for _, _, fixable in findings):
        return "a fix is offered"
    missing = [r for r in case.reports if not any(line == r.line and r.says in message for line, message, _ in findings)]
    if missing:
        return f"no report at line {missing[0].line} that says {missing[0].says!r}"
    extra = len(findings) - len(case.reports)
    return f"{extra} unexpected finding at line {findings[0][0]}" if extra else ""


def _executed(case: Case, device: str) -> Iterator[Row]:
    """Rows of the contract on each device that it names and the user wants."""
    assert case.contract is not None
    for name in case.contract.devices:
        if device in {"all", name}:
            verdicts = execute(case, name)
            if verdicts is None:
                yield Row(case.rule, case.name, name, "", "", "", "", "not verified")
            for verdict in verdicts or ():
                yield _row(case, name, verdict)


def execute(case: Case, device: str, before: Path | None = None, after: Path | None = None) -> list[Verdict] | None:
    """Run both sides of a case (or other files in their place) and judge them; None when the device is absent."""
    from . import execute as execution

    assert case.contract is not None
    assert case.after is not None
    if device == "cuda" and not execution.has_cuda():
        return None
    sides: list[Side] = [execution.observe(case, code, device) for code in (before or case.before, after or case.after)]
    return judge(case.contract.on(device), *sides)


def _row(case: Case, device: str, verdict: Verdict) -> Row:
    outcome = f"BREACH: {verdict.breach}" if verdict.breach else "holds"
    return Row(case.rule, case.name, device, verdict.observation, _short(verdict.before), _short(verdict.after), verdict.promise, outcome)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
