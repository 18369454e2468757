"""Run a command of the user before and after the fixes, recorded, and judge what has changed."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..effects import Aspect
from ..rule import Safety
from .applied import edited_lines, in_original_lines, moved_lines, original_lines, with_reached
from .changes import Change, changes
from .facts import Facts, facts_of
from .judgement import Applied, Judged, Kind, judge
from .trace import Process, read_traces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..sandbox import Outcome, Sandbox

SEED = 0
_SITE = Path(__file__).parent / "recorder" / "site"
"""Put on the path of the command: Python loads `sitecustomize` from it when it starts."""


class NothingRecorded(Exception):
    """The command left no trace; the text says what to do."""


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    outcome: Outcome
    processes: tuple[Process, ...] = ()
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """For each changed file the line of the original that each of its lines comes from, by number."""

    @property
    def facts(self) -> Facts:
        """What is compared; lines are those of the original files."""
        ending = "" if self.outcome.passed else self.outcome.reason
        facts = facts_of(self.processes, self.outcome.stdout.text, ending)
        for fact in facts.values():
            lines = self.lines.get(fact.place.file)
            if lines and fact.place.line < len(lines):
                fact.place = fact.place._replace(line=lines[fact.place.line])
        return facts


@dataclass(frozen=True)
class Fixes:
    """Some fixes, and the files that they change."""

    applied: tuple[Applied, ...]
    files: Mapping[str, bytes]
    """The new content by path below the top of the project."""


@dataclass(frozen=True)
class Stage:
    """A run that comes further than the one before it, by the fixes of some rules."""

    run: Run
    rules: frozenset[str] = frozenset()
    """The rules whose fixes are applied."""
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """The command before and after the fixes."""

    command: str
    plain: Run
    """Before the fixes, not recorded."""
    stages: tuple[Stage, ...]
    """Before the fixes; and where that breaks off, with those by which it goes on: what follows is compared from there."""
    after: Run
    fixes: tuple[Applied, ...]
    judged: tuple[Judged, ...]
    """What the fixes have changed together."""
    safe_judged: tuple[Judged, ...] | None
    """What the safe fixes have changed alone; None when there was nothing to tell apart."""
    varying: tuple[str, ...]
    """What differs from run to run without any fix, and was not judged."""

    @property
    def before(self) -> Run:
        """Before the fixes, recorded."""
        return self.stages[0].run

    @property
    def base(self) -> Stage:
        """What comes furthest without the other fixes."""
        return self.stages[-1]

    @property
    def slowdown(self) -> float:
        """How many times as long the command takes when it is recorded."""
        return self.before.outcome.seconds / max(self.plain.outcome.seconds, 1e-9)

    @property
    def fails_newly(self) -> bool:
        """Whether the command fails with the fixes, and did not without."""
        return self.before.outcome.passed and not self.after.outcome.passed

    @property
    def regressions(self) -> list[Judged]:
        """The changes that no rule has promised, each once."""
        found = {(j.change.key, j.change.after): j for j in (*(self.safe_judged or ()), *self.judged) if j.kind is Kind.REGRESSION}
        return list(found.values())


class Tell(Protocol):
    """Shows progress."""

    def __call__(self, text: str) -> None:
        """Show one line."""


class Script:
    """Runs of one command on one project."""

    def __init__(self, sandbox: Sandbox, command: str, sources: Mapping[str, bytes], tell: Tell) -> None:
        self._sandbox, self._command, self._sources, self._tell = sandbox, command, sources, tell
        self._edited: dict[str, list[int]] = {}

    def compare(self, fixes: Fixes, safe: Fixes | None, of_rules: Callable[[frozenset[str]], Fixes]) -> Comparison:
        """Run the command before and after; `safe` are the safe fixes alone, where there are unsafe ones too.

        `of_rules` gives the fixes of some rules alone. Raises `NothingRecorded`, and `NotCopied`.
        """
        # Alone, the safe fixes may be others: an unsafe one may have taken the place of one of them.
        self._edited = edited_lines([*fixes.applied, *(safe.applied if safe else ())], self._sources)
        plain = self._run("before the fixes, not recorded", {}, recorded=False)
        before = self._run("before the fixes, recorded", {})
        if not before.processes:
            raise NothingRecorded(_nothing_recorded(self._command, self._sandbox.top, before.outcome))
        after = self._run("after the fixes", fixes.files)
        stages = self._stages(before, after, self._reached(fixes, [Stage(before)]), of_rules)
        applied = self._reached(fixes, stages)
        judged = _judged(stages, after, applied)
        safe_judged = self._safe(stages, safe, applied) if safe else None
        varying = self._varying(stages[-1], [*judged, *(safe_judged or ())])
        names = tuple(sorted({f"{change.key.aspect.value}: {change.key.label}" for change in varying}))
        kept = without(varying, judged)
        kept_safe = None if safe_judged is None else without(varying, safe_judged)
        return Comparison(self._command, plain, tuple(stages), after, tuple(applied), kept, kept_safe, names)

    def _stages(self, before: Run, after: Run, applied: Sequence[Applied], of_rules: Callable[[frozenset[str]], Fixes]) -> list[Stage]:
        """Where the command breaks off, it is run with just the fixes by which it doesn't: behind that place too there are fixes to see."""
        stages = [Stage(before)]
        everything = frozenset(fix.rule for fix in applied)
        while not stages[-1].run.outcome.passed:
            last = stages[-1]
            rules = last.rules | _curing(changes(last.run.facts, after.facts), applied)
            if rules in {last.rules, everything}:
                break
            files = of_rules(rules).files
            run = self._run(f"with the fixes of {', '.join(sorted(rules))} alone, by which it goes on", files)
            stages.append(Stage(run, rules, files))
        return stages

    def _safe(self, stages: Sequence[Stage], safe: Fixes, applied: Sequence[Applied]) -> list[Judged]:
        """With the safe fixes alone the values have to be the same."""
        alone = self._reached(safe, stages)
        after = self._run("after the safe fixes", safe.files)
        rules = {fix.rule for fix in alone} - {fix.rule for fix in applied if fix.safety is not Safety.SAFE}
        return _judged([stage for stage in stages if stage.rules <= rules], after, alone)

    def _reached(self, fixes: Fixes, stages: Sequence[Stage]) -> list[Applied]:
        processes = [process for stage in stages for process in stage.run.processes]
        return with_reached(fixes.applied, processes, self._sources)

    def _varying(self, base: Stage, judged: Sequence[Judged]) -> list[Change]:
        """What differs when the command is simply run again; asked only where something is to be explained."""
        if all(j.kind is not Kind.REGRESSION for j in judged):
            return []
        again = self._run("once more as before, since something has changed that no rule has promised", base.files)
        return changes(base.run.facts, again.facts)

    def _run(self, what: str, files: Mapping[str, bytes], recorded: bool = True) -> Run:
        self._tell(f"running `{self._command}` {what} …")
        with tempfile.TemporaryDirectory(prefix="torchfix-traces-") as folder:
            traces = os.path.join(folder, "traces")
            os.mkdir(traces)
            edited = os.path.join(folder, "edited.json")
            lines = {name: original_lines(self._sources[name], data) for name, data in files.items()}
            Path(edited).write_text(json.dumps(moved_lines(self._edited, lines)), encoding="utf-8")
            recording = {"TORCHFIX_TRACES": traces, "TORCHFIX_EDITED": edited} if recorded else {}
            outcome = self._sandbox.trial(self._command, files, self._environ(recording))
            self._tell(f" {'passed' if outcome.passed else outcome.reason}, {outcome.seconds:.1f} s\n")
            return Run(outcome, tuple(in_original_lines(process, lines) for process in read_traces(traces)), lines)

    def _environ(self, recording: Mapping[str, str]) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
        """The variables of a run: the same seeds in all of them."""

        def environ(env: Mapping[str, str]) -> Mapping[str, str]:
            path = os.pathsep.join(filter(None, (str(_SITE), env.get("PYTHONPATH"))))
            own = {"TORCHFIX_SEED": str(SEED), "TORCHFIX_ROOT": self._sandbox.folder, "PYTHONHASHSEED": "0", "PYTHONPATH": path}
            return {**env, **own, **recording}

        return environ


def _judged(stages: Sequence[Stage], after: Run, applied: Sequence[Applied]) -> list[Judged]:
    """What has changed from each stage to the next, by the fixes that are new in it, and from the last one to all fixes."""
    judged: list[Judged] = []
    runs = [*stages, Stage(after, frozenset(fix.rule for fix in applied))]
    for first, second in pairwise(runs):
        new = [fix for fix in applied if fix.rule in second.rules - first.rules]
        judged += judge(changes(first.run.facts, second.run.facts), new)
    return judged


def _curing(found: Sequence[Change], applied: Sequence[Applied]) -> frozenset[str]:
    """The rules that have promised that the exception which ends the program is gone; it may end with another one, further on."""
    endings = [change for change in found if change.key.label == "ends with" and not change.is_new]
    kinds = {change.before.partition(":")[0] for change in endings}
    promised = [j for j in judge(found, applied) if j.kind is Kind.PROMISED]
    cured = [j for j in promised if j.change in endings or (j.change.key.aspect is Aspect.RAISED and j.change.key.label in kinds)]
    return frozenset(rule for j in cured for rule in j.rules)


def without(varying: Sequence[Change], judged: Sequence[Judged]) -> tuple[Judged, ...]:
    """What is left when all is taken out that varies from run to run.

    What comes and goes there (a file with the time in its name) does so under another name each time: all that does in its place
    is taken out.
    """
    keys = {change.key for change in varying}
    places = {change.key[:4] for change in varying if change.is_new} & {change.key[:4] for change in varying if change.is_gone}
    return tuple(
        j for j in judged if j.change.key not in keys and not ((j.change.is_new or j.change.is_gone) and j.change.key[:4] in places)
    )


def _nothing_recorded(command: str, top: str, outcome: Outcome) -> str:
    log = "\n".join(f"    {line}" for line in outcome.log().splitlines())
    end = f"; the end of its log:\n{log}" if log else ""
    return (
        f"`{command}` ({outcome.reason}) did nothing with torch that could be recorded: it has to be a command that runs the code "
        f"with a Python which has torch, and that reads PYTHONPATH (not `python -I`). It runs in a private copy of {top}: "
        f"where that is not your whole project, put a pyproject.toml at the top of it{end}"
    )
