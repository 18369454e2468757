"""Findings as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .style import paint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..rule import Finding, Safety
    from ..workspace.run import Failure
    from ..workspace.tasks import Located

_FIX = {"safe": "safe fix", "unsafe": "unsafe fix", "report": "no automatic fix"}
_COLOR = {"safe": "green", "unsafe": "yellow", "report": "dim"}


def finding_text(path: str, located: Located, color: bool) -> str:
    """One finding: place, rule, message, whether a fix exists and how safe it is, and the line it is about."""
    finding, line = located.finding, located.line
    place = paint(f"{path}:{finding.position.line}:{finding.position.column}:", "bold", color)
    fix = paint(f"[{_FIX[finding.safety.label]}]", _COLOR[finding.safety.label], color)
    head = f"{place} {paint(finding.rule, 'cyan', color)} {finding.message} {fix}"
    return f"{head}\n{_excerpt(line, finding)}"


def _excerpt(line: str, finding: Finding) -> str:
    column = finding.position.column - 1
    width = max(1, min(finding.span.end - finding.span.start, len(line) - column))
    # Tabs stay tabs under the line, so that the marks stand where the terminal shows the code.
    blank = "".join("\t" if sign == "\t" else " " for sign in line[:column])
    return f"    {line}\n    {blank}{'^' * width}"


def failure_text(failure: Failure, color: bool) -> str:
    """A file that was not analysed."""
    place = paint(f"{failure.path}:{failure.line}:", "bold", color)
    return f"{place} {paint('not analysed', 'red', color)}: {failure.reason}"


def count(number: int, what: str) -> str:
    """A number with its noun: `1 finding`, `2 findings`, `3 fixes`."""
    plural = f"{what}es" if what.endswith(("s", "x")) else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def hidden_fixes(findings: Iterable[Finding], minimum: Safety) -> str:
    """The last line: how many fixes are above the threshold, and which flag offers them; empty when there are none."""
    left = sum(1 for finding in findings if finding.edits and finding.safety < minimum)
    if not left:
        return ""
    return f"{count(left, 'more fix')} {'is' if left == 1 else 'are'} unsafe: see {'it' if left == 1 else 'them'} with --unsafe-fixes"
