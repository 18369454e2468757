"""`verify --script`: what the fixes change in the behaviour of the user's own program."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..output.behaviour import print_behaviour
from ..rule import Safety
from ..sandbox import NotCopied, opened
from ..verify.applied import applied
from ..verify.report import costs, curves, promises
from ..verify.script import Comparison, Fixes, NothingRecorded, Script
from ..workspace.run import Failure
from ..workspace.settle import settled
from ..workspace.tasks import RewriteTask, Rewrote
from .files import CLEAN, FOUND, minimum_of, over_files, rules_of, surroundings_of, tell_failures
from .options import UsageError
from .verified import sandbox_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .options import Settings


def verify_script(settings: Settings, foreign: Sequence[str] = ()) -> int:
    """Run the command of the settings before and after the fixes and report; 1 when something got worse that no rule promises.

    The report goes to the files too that the settings name. `foreign` are the flags that were given and are for rules only.
    Raises `UsageError` when there is nothing to run or to record.
    """
    if foreign:
        raise UsageError(f"{foreign[0]} is for the fixtures of rules, and can't be combined with --script")
    if not settings.command:
        raise UsageError("--script needs a command, such as 'python train.py --epochs 1'")
    if os.name != "posix":
        raise UsageError("--script needs a POSIX system")
    _check_outputs(settings)
    all_results = _rewritten(settings, minimum_of(settings))
    failures = [result for result in all_results if isinstance(result, Failure)]
    status = tell_failures(failures, settings)
    results = [result for result in all_results if isinstance(result, Rewrote) and result.after != result.before]
    if not results:
        print("Nothing to fix, so nothing to compare.")
        return status
    comparison = _compared(settings, results)
    rows, prices = promises(comparison), costs(comparison)
    _write_files(comparison, settings)
    print_behaviour(comparison, rows, prices)
    return max(status, FOUND if comparison.regressions else CLEAN)


def _check_outputs(settings: Settings) -> None:
    """Complain before the command is run, which may take long."""
    missing = [name for name in ("jinja2", "plotly") if settings.html and find_spec(name) is None]
    if missing:
        raise UsageError(f"--html needs {missing[0]}: pip install 'torchfix-codemods[report]'")
    for path in filter(None, (settings.html, settings.json)):
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise UsageError(f"{path} can't be written: there is no folder {os.path.dirname(path)}")


def _rewritten(settings: Settings, minimum: Safety) -> list[Rewrote | Failure]:
    task = RewriteTask(rules_of(settings), minimum, surroundings_of(settings))
    return list(settled(task, over_files(task, settings)))


def _compared(settings: Settings, results: list[Rewrote]) -> Comparison:
    rules = {rule.name: rule for rule in rules_of(settings)()}
    try:
        with opened([result.path for result in results], sandbox_options(settings)) as sandbox:

            def below_top(path: str) -> str:
                return os.path.relpath(os.path.realpath(path), sandbox.top)

            def fixes(results: list[Rewrote]) -> Fixes:
                files = {below_top(result.path): result.after for result in results if result.after != result.before}
                return Fixes(tuple(applied(results, sandbox.top, rules)), files)

            sources = {below_top(result.path): result.before for result in results}
            everything = fixes(results)
            script = Script(sandbox, settings.command, sources, _tell)
            safe = fixes(_of_safety(settings, Safety.SAFE)) if _is_mixed(everything) else None

            def of_rules(names: frozenset[str]) -> Fixes:
                return fixes(_of_safety(replace(settings, select=tuple(sorted(names)), ignore=()), minimum_of(settings)))

            return script.compare(everything, safe, of_rules)
    except (NotCopied, NothingRecorded) as error:
        raise UsageError(str(error)) from None


def _is_mixed(fixes: Fixes) -> bool:
    """Whether there are safe fixes among unsafe ones."""
    return {fix.safety for fix in fixes.applied} == {Safety.SAFE, Safety.UNSAFE}


def _of_safety(settings: Settings, minimum: Safety) -> list[Rewrote]:
    return [result for result in _rewritten(settings, minimum) if isinstance(result, Rewrote)]


def _tell(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def _write_files(comparison: Comparison, settings: Settings) -> None:
    if settings.json:
        from ..output.behaviour_json import as_json

        _write(settings.json, as_json(comparison, promises(comparison), costs(comparison)))
    if settings.html:
        from ..output.behaviour_page import as_page

        _write(settings.html, as_page(comparison, promises(comparison), costs(comparison), curves(comparison)))


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None
