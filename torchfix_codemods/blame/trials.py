"""Whether a command passes with some files changed; a failure is believed when it happens twice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .budget import Exhausted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..sandbox import Outcome, Sandbox
    from .budget import Budget

    Tell = Callable[[str], None]


class Red(Exception):
    """The command fails before anything is changed."""

    def __init__(self, outcome: Outcome, flaky: bool) -> None:
        super().__init__(outcome.reason)
        self.outcome, self.flaky = outcome, flaky


class Trials:
    """The runs of one command."""

    def __init__(self, sandbox: Sandbox, command: str, budget: Budget, tell: Tell) -> None:
        self._sandbox, self._command, self._budget, self._tell = sandbox, command, budget, tell
        self._accepted = {0}
        """The exit codes that count as passed."""
        self.flaky: list[str] = []
        """On what the command both passed and failed."""

    def baseline(self, allow_red: bool) -> Outcome:
        """Run the command on the files as they are. Raises `Red` where it fails.

        With `allow_red` its exit code counts as passed from now on; only a command that runs out of time is refused then.
        """
        passed, outcome = self.judge({}, "no fixes")
        if not passed:
            if not allow_red or outcome.timed_out:
                raise Red(outcome, bool(self.flaky))
            self._accepted.add(outcome.returncode)
        return outcome

    def judge(self, changes: Mapping[str, bytes], what: str) -> tuple[bool, Outcome]:
        """Whether the command passes with some files changed, and the run that shows it: twice the same, or two of three.

        `what` is the name of the changes, for people. Raises `Exhausted`.
        """
        first = self._run(changes, what)
        if self._passes(first):
            return True, first
        second = self._run(changes, what)
        if not self._passes(second):
            return False, second
        self.flaky.append(what)
        third = self._run(changes, what)
        return self._passes(third), third if self._passes(third) else first

    def _passes(self, outcome: Outcome) -> bool:
        return not outcome.timed_out and outcome.returncode in self._accepted

    def _run(self, changes: Mapping[str, bytes], what: str) -> Outcome:
        if self._budget.left <= 0:
            raise Exhausted
        self._budget.spend()
        self._tell(f"run {self._budget.spent}: {what} …")
        outcome = self._sandbox.trial(self._command, {self._below_top(path): data for path, data in changes.items()})
        self._tell(f" {'passed' if self._passes(outcome) else outcome.reason}, {outcome.seconds:.1f} s\n")
        return outcome

    def _below_top(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self._sandbox.top)
