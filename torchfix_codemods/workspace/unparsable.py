"""Why a file can't be parsed, and what its owner can do about it."""

from __future__ import annotations

import re

_PYTHON_2 = re.compile(
    r"^\s*(print\s+[^(=\s]|print\s*$|exec\s+[\"'\w]|raise\s+\w+\s*,|except\s+[\w.()\s,]+?,\s*\w+\s*:)|<>|`\w+`|\bur?[\"'].*\bunicode\b|\b0[0-7]+L?\b\s*$|>>\s*sys\.std",
)
_PRINT = re.compile(r"Missing parentheses in call to '(print|exec)'")
_ASYNC = re.compile(r"\basync\s*=")


def explain(text: str, line: int, reason: str) -> str:
    """A reason that says what to do, from the parser's message and the line that it stopped at."""
    lines = text.splitlines()
    stopped = lines[line - 1] if 0 < line <= len(lines) else ""
    if _ASYNC.search(stopped):
        return "`async` is a keyword since Python 3.7: write `non_blocking=` (the name since torch 0.4.1) and run again"
    if _PRINT.search(reason) or _PYTHON_2.search(stopped):
        return "this is Python 2 code: convert it first (2to3 does most of it)"
    return f"{reason}; fix the syntax and run again"
