"""`apply`: fix files in place."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from ..output.table import print_table
from ..output.text import count, hidden_fixes
from ..workspace.run import Failure
from ..workspace.settle import settled
from ..workspace.tasks import RewriteTask, Rewrote
from ..workspace.write import NotWritten, may_write, write
from .diff import tell_remaining
from .files import CLEAN, FOUND, INTERNAL, minimum_of, over_files, root_of, rules_of, stdin_name, stdin_text, surroundings_of, tell_failures

if TYPE_CHECKING:
    from .options import Settings


def apply(settings: Settings) -> int:
    """Write the fixed files and print a summary; 0 when nothing is left, 1 when findings are."""
    if settings.verify_with:
        from .verified import apply_verified

        return apply_verified(settings)
    task = RewriteTask(rules_of(settings), minimum_of(settings), surroundings_of(settings))
    if settings.reads_stdin:
        return _filter(task.text(stdin_name(settings), stdin_text()), settings)
    failures: list[Failure] = []
    done: list[Rewrote] = []
    root = root_of(settings.paths)
    # Nothing is written before everything is analysed: what is known of a file may come from others.
    for result in settled(task, over_files(task, settings), lambda path: may_write(path, root)):
        if isinstance(result, Failure):
            failures.append(result)
            continue
        problem = _written(result, root)
        failures += [problem] if problem else []
        done += [] if problem else [result]
    status = tell_failures(failures, settings)
    if not settings.quiet:
        print_summary(done, settings)
    return max(status, FOUND if any(result.remaining for result in done) else CLEAN)


def _written(result: Rewrote, root: str) -> Failure | None:
    if result.after == result.before:
        return None
    try:
        write(result.path, result.before, result.after, root)
    except NotWritten as error:
        return Failure(result.path, 1, str(error), ours=True)
    return None


def _filter(result: Rewrote | Failure, settings: Settings) -> int:
    """With `-` the fixed text goes to stdout."""
    if isinstance(result, Failure):
        tell_failures([result], settings)
        return INTERNAL if result.ours else FOUND
    sys.stdout.buffer.write(result.after)
    sys.stdout.flush()
    if not settings.quiet:
        tell_remaining([result], settings)
    return FOUND if result.remaining else CLEAN


def print_summary(results: list[Rewrote], settings: Settings) -> None:
    """A table of what was fixed and what is left, by rule."""
    fixed = Counter(finding.rule for result in results for finding in result.fixed)
    left = Counter(located.finding.rule for result in results for located in result.remaining)
    files = Counter(rule for result in results for rule in {f.rule for f in result.fixed} | {loc.finding.rule for loc in result.remaining})
    if not files:
        print("Nothing to fix.")
        return
    rows = [(rule, str(fixed[rule]), str(left[rule]), str(files[rule])) for rule in sorted(files)]
    print_table(("rule", "fixed", "left", "files"), rows)
    changed = sum(result.after != result.before for result in results)
    print(f"{count(sum(fixed.values()), 'finding')} fixed in {count(changed, 'file')}; {sum(left.values())} left (`check` lists them).")
    hidden = hidden_fixes((located.finding for result in results for located in result.remaining), minimum_of(settings))
    if hidden:
        print(hidden)
