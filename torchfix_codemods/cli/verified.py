"""`apply --verify-with`: fix files in place, as far as a command of the user still passes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..blame.budget import Budget, Exhausted
from ..blame.rewrites import Rewrites
from ..blame.trials import Red, Trials
from ..blame.verdict import Verdict, judged
from ..output.blame import print_verdict
from ..sandbox import Limits, NotCopied, Options, deferred, environment, opened
from ..workspace.run import Failure
from ..workspace.settle import settled
from ..workspace.tasks import RewriteTask, Rewrote
from ..workspace.write import NotWritten, may_write, obstacle, write_together
from .apply import print_summary
from .files import CLEAN, FOUND, INTERNAL, minimum_of, over_files, root_of, rules_of, surroundings_of, tell_failures
from .options import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .options import Settings


def apply_verified(settings: Settings) -> int:
    """Write the fixes with which the command passes, all files together, and print a summary; exit codes as for `apply`.

    Raises `UsageError` when the command fails before anything is fixed, or can't be run.
    """
    if os.name != "posix":
        raise UsageError("--verify-with needs a POSIX system")
    task = RewriteTask(rules_of(settings), minimum_of(settings), surroundings_of(settings))
    root = root_of(settings.paths)
    results = _distinct(settled(task, over_files(task, settings), lambda path: may_write(path, root)))
    status = tell_failures([*_failures(results), *_unwritable(results, root)], settings)
    done = [result for result in results if isinstance(result, Rewrote) and not obstacle(result.path, root)]
    changed = [result for result in done if result.after != result.before]
    if changed:
        verdict = _verdict(changed, Rewrites(task, [result.path for result in changed], lambda path: may_write(path, root)), settings)
        status = max(status, tell_failures(_failures(verdict.results), settings))
        try:
            _write(verdict, root)
        except NotWritten as error:
            print(f"error: nothing was written, since fixes were tried together: {error}", file=sys.stderr)
            return INTERNAL
        judgement = {result.path: result for result in verdict.results if isinstance(result, Rewrote)}
        done = [judgement.get(result.path, result) for result in done]
    if not settings.quiet:
        print_summary(done, settings)
    if changed:
        print_verdict(verdict, settings.verify_with, settings.budget)
    return max(status, FOUND if any(result.remaining for result in done) else CLEAN)


def _distinct(results: Iterable[Rewrote | Failure]) -> list[Rewrote | Failure]:
    """One result for each file, where links give it several names."""
    by_file: dict[str, Rewrote | Failure] = {}
    for result in results:
        by_file.setdefault(os.path.realpath(result.path), result)
    return list(by_file.values())


def _failures(results: Iterable[Rewrote | Failure]) -> list[Failure]:
    return [result for result in results if isinstance(result, Failure)]


def _unwritable(results: Iterable[Rewrote | Failure], root: str) -> list[Failure]:
    changed = (result.path for result in results if isinstance(result, Rewrote) and result.after != result.before)
    reasons = ((path, obstacle(path, root)) for path in changed)
    return [Failure(path, 1, reason, ours=True) for path, reason in reasons if reason]


def _verdict(changed: list[Rewrote], rewrites: Rewrites, settings: Settings) -> Verdict:
    order = {rule.name: place for place, rule in enumerate(rules_of(settings)())}
    budget = Budget(settings.budget)
    try:
        with opened([result.path for result in changed], sandbox_options(settings)) as sandbox:
            trials = Trials(sandbox, settings.verify_with, budget, _teller(settings))
            trials.baseline(settings.allow_red)
            return judged(changed, rewrites, trials, budget, order)
    except Red as red:
        raise UsageError(_red_text(red, settings)) from None
    except Exhausted:
        raise UsageError(
            f"`{settings.verify_with}` is flaky, and --budget {settings.budget} is too small to find out how it ends"
        ) from None
    except NotCopied as error:
        raise UsageError(f"{error}; nothing was applied") from None
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was applied", file=sys.stderr)
        raise


def sandbox_options(settings: Settings) -> Options:
    """How trials are made; raises `UsageError`."""
    try:
        environment({}, settings.env)
    except ValueError as error:
        raise UsageError(f"--env: {error}") from None
    limits = Limits(settings.timeout, settings.memory_limit, settings.cpu_limit)
    return Options(limits, settings.env, settings.link, settings.copy_limit)


def _teller(settings: Settings) -> Callable[[str], None]:
    """Shows each run on a terminal, as it goes."""
    shown = sys.stderr.isatty() and not settings.quiet

    def tell(text: str) -> None:
        if shown:
            print(text, end="", file=sys.stderr, flush=True)

    return tell


def _red_text(red: Red, settings: Settings) -> str:
    command, outcome = settings.verify_with, red.outcome
    if red.flaky:
        advice = "it passed once, and failed twice on the same files: it is flaky"
    elif outcome.timed_out:
        advice = "give it more time with --timeout, or name a shorter command"
    else:
        advice = "mend it first, or let its exit code count as passed with --allow-red"
    log = outcome.log()
    end = "; the end of its log:\n" + "\n".join(f"    {line}" for line in log.splitlines()) if log else ""
    return f"`{command}` fails before anything is fixed ({outcome.reason}): nothing was applied; {advice}{end}"


def _write(verdict: Verdict, root: str) -> None:
    changes = [(result.path, result.before, result.after) for result in verdict.results if isinstance(result, Rewrote)]
    with deferred():
        write_together([change for change in changes if change[1] != change[2]], root)
