"""Prove rules: execute their cases, and print one row for each observation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..measured import HOLDS, NOT_VERIFIED
from ..output.table import print_table
from ..output.text import count
from .case import Case, FixtureError, cases
from .record import RecordError, merged, read, write
from .sides import NEEDS_TORCH, execute, obstacle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ..rule import Rule
    from .contract import Verdict
    from .interpreter import Interpreter

BROKEN = "BREACH"

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


def run(rules: Sequence[Rule], device: str, fixtures: Path, tool: Tool, python: Interpreter, record: Path | None = None) -> int:
    """Prove the rules on the devices that are there, and keep the outcome in a file when one is named.

    1 when a promise is broken, 2 when a fixture or the record can't be read, or the device that was asked for isn't there.
    """
    try:
        known = read(record) if record else []
        rows = [row for rule in rules for row in _prove(rule, device, fixtures, tool, python)]
        if record:
            write(record, merged(known, rows, [case for rule in rules for case in cases(fixtures, rule.name)], python))
    except (FixtureError, RecordError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    columns = ("rule", "case", "device", "observation", "before", "after", "promised", "verdict")
    print_table(columns, [tuple(getattr(row, name) for name in columns) for row in rows], title=str(python.versions))
    counts = {word: sum(row.verdict.startswith(word) for row in rows) for word in (HOLDS, BROKEN, NOT_VERIFIED, NEEDS_TORCH)}
    print(_summary(counts, python))
    absent = counts[NOT_VERIFIED] > 0
    if absent:
        print(f"No GPU is here that {python.versions} can use: run this on a machine with one.", file=sys.stderr)
    return 1 if counts[BROKEN] else 2 if absent and device == "cuda" else 0


def _summary(counts: dict[str, int], python: Interpreter) -> str:
    other = f", {counts[NEEDS_TORCH]} for another torch" if counts[NEEDS_TORCH] else ""
    told = f"{count(counts[HOLDS], 'promise')} kept, {counts[BROKEN]} broken, {counts[NOT_VERIFIED]} not verified{other}"
    return f"{told}: {python.versions}."


def _prove(rule: Rule, device: str, fixtures: Path, tool: Tool, python: Interpreter) -> Iterator[Row]:
    found = cases(fixtures, rule.name)
    if not found:
        yield Row(rule.name, "", "", "cases", "", "", "at least one", f"{BROKEN}: the rule has no fixtures")
    for case in found:
        if case.is_rewrite:
            yield _text_row(rule, case, tool)
        if case.contract:
            yield from _executed(case, device, python)
    yield from _counted(rule, "refusal", "silent", [case for case in found if case.is_refusal], tool)
    yield from _counted(rule, "report", "made", [case for case in found if case.reports], tool)


def _text_row(rule: Rule, case: Case, tool: Tool) -> Row:
    problem = text_problem(rule, case, tool)
    what = "text of the rewrite" if case.is_rewrite else "reports" if case.reports else "silence"
    return Row(rule.name, case.name, "", what, "", "", "", f"{BROKEN}: {problem}" if problem else HOLDS)


def _counted(rule: Rule, noun: str, outcome: str, found: list[Case], tool: Tool) -> Iterator[Row]:
    """One row for each case that is wrong, and one for all that are right."""
    rows = [_text_row(rule, case, tool) for case in found]
    yield from (row for row in rows if row.verdict != HOLDS)
    right = sum(row.verdict == HOLDS for row in rows)
    if right:
        yield Row(rule.name, count(right, noun), "", outcome, "", "", "", HOLDS)


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


def _executed(case: Case, device: str, python: Interpreter) -> Iterator[Row]:
    """Rows of the contract on each device that it names and the user wants."""
    assert case.contract is not None
    for name in case.contract.devices:
        if device in {"all", name}:
            missing = obstacle(case, name, python)
            if missing:
                yield Row(case.rule, case.name, name, "", "", "", "", missing)
            else:
                yield from (_row(case, name, verdict) for verdict in execute(case, name, python=python))


def _row(case: Case, device: str, verdict: Verdict) -> Row:
    outcome = f"{BROKEN}: {verdict.breach}" if verdict.breach else HOLDS
    return Row(case.rule, case.name, device, verdict.observation, _short(verdict.before), _short(verdict.after), verdict.promise, outcome)


def _short(value: object) -> str:
    text = str(value).replace("\n", "\\n")
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
