"""`check`: list findings, write nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..output.style import use_color
from ..output.text import count, finding_text, hidden_fixes
from ..rule import Safety
from ..workspace.run import Failure
from ..workspace.tasks import Checked, CheckTask
from .files import CLEAN, FOUND, minimum_of, over_files, rules_of, stdin_name, stdin_text, surroundings_of, tell_failures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..rule import Finding
    from .options import Settings


def check(settings: Settings) -> int:
    """Print the findings of all files; 1 when there are any (or a file could not be analysed), else 0."""
    task = CheckTask(rules_of(settings), surroundings_of(settings))
    results: Iterable[Checked | Failure]
    results = [task.text(stdin_name(settings), stdin_text())] if settings.reads_stdin else over_files(task, settings)
    color = use_color(settings.color)
    findings: list[Finding] = []
    failures: list[Failure] = []
    files = 0
    for result in results:
        files += 1
        if isinstance(result, Failure):
            failures.append(result)
            continue
        for located in result.findings:
            print(finding_text(result.path, located, color))
            findings.append(located.finding)
    sys.stdout.flush()
    status = tell_failures(failures, settings)
    if not settings.quiet:
        _print_summary(findings, files, settings)
    return max(status, FOUND if findings else CLEAN)


def _print_summary(findings: list[Finding], files: int, settings: Settings) -> None:
    fixable = [f for f in findings if f.safety >= minimum_of(settings)]
    if findings:
        print(
            f"{count(len(findings), 'finding')} in {count(files, 'file')}; {count(len(fixable), 'can')} be fixed with `apply`.".replace(
                "cans", "can"
            )
        )
    else:
        print(f"No findings in {count(files, 'file')}.")
    hidden = hidden_fixes(findings, minimum_of(settings))
    if hidden and minimum_of(settings) is Safety.SAFE:
        print(hidden)
