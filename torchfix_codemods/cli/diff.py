"""`diff`: show what would change, write nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..output.diff import print_colored, unified_diff
from ..output.style import use_color
from ..output.text import finding_text, hidden_fixes
from ..workspace.run import Failure
from ..workspace.settle import settled
from ..workspace.tasks import RewriteTask, Rewrote
from .files import CLEAN, FOUND, minimum_of, over_files, root_of, rules_of, stdin_name, stdin_text, surroundings_of, tell_failures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .options import Settings


def diff(settings: Settings) -> int:
    """Print the diff of all files to stdout, and what has no fix to stderr; 1 when something would change."""
    task = RewriteTask(rules_of(settings), minimum_of(settings), surroundings_of(settings))
    results: Iterable[Rewrote | Failure]
    results = [task.text(stdin_name(settings), stdin_text())] if settings.reads_stdin else settled(task, over_files(task, settings))
    root = root_of([] if settings.reads_stdin else settings.paths)
    failures: list[Failure] = []
    changed: list[Rewrote] = []
    remaining: list[Rewrote] = []
    for result in results:
        if isinstance(result, Failure):
            failures.append(result)
            continue
        if result.after != result.before:
            changed.append(result)
            _print(unified_diff(result.path, result.before, result.after, root), settings)
        if result.remaining:
            remaining.append(result)
    sys.stdout.flush()
    status = tell_failures(failures, settings)
    if not settings.quiet:
        tell_remaining(remaining, settings)
    return max(status, FOUND if changed or remaining else CLEAN)


def _print(text: bytes, settings: Settings) -> None:
    if use_color(settings.color):
        print_colored(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)


def tell_remaining(results: list[Rewrote], settings: Settings) -> None:
    """List on stderr what stays: findings without a fix, refused fixes with the reason, and how many are unsafe."""
    color = use_color(settings.color, sys.stderr)
    for result in results:
        reasons = {located.finding: reason for located, reason in result.refused}
        for located in result.remaining:
            if not located.finding.edits:
                print(finding_text(result.path, located, color), file=sys.stderr)
            elif located.finding in reasons:
                text = finding_text(result.path, located, color)
                print(f"{text}\n    not fixed: {reasons[located.finding]}", file=sys.stderr)
    hidden = hidden_fixes((located.finding for r in results for located in r.remaining), minimum_of(settings))
    if hidden:
        print(hidden, file=sys.stderr)
