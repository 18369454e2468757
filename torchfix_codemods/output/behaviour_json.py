"""The behaviour report as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .behaviour import others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..verify.judgement import Judged
    from ..verify.report import Cost, Promise
    from ..verify.script import Comparison, Run


def as_json(comparison: Comparison, promises: Sequence[Promise], costs: Sequence[Cost]) -> str:
    """One object: the runs, the fixes, what was promised, what else has changed, regressions and costs."""
    report = {
        "command": comparison.command,
        "before": _run(comparison.before),
        "going_on": [{"rules": sorted(stage.rules), **_run(stage.run)} for stage in comparison.stages[1:]],
        "after": _run(comparison.after),
        "slowdown": round(comparison.slowdown, 3),
        "fixes": [
            {"rule": fix.rule, "safety": fix.safety.label, "file": fix.file, "line": fix.line, "function": fix.function, "run": fix.reached}
            for fix in comparison.fixes
        ],
        "promises": [asdict(promise) for promise in promises],
        "regressions": [_judged(judged) for judged in comparison.regressions],
        "other_changes": [_judged(judged) for judged in others(comparison)],
        "costs": [asdict(cost) for cost in costs],
        "not_judged": list(comparison.varying),
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def _run(run: Run) -> dict[str, Any]:
    """How a run ended, and in which processes."""
    outcome = run.outcome
    processes = [{"name": process.name, "recorder_errors": dict(process.errors)} for process in run.processes]
    return {"outcome": outcome.reason, "passed": outcome.passed, "seconds": round(outcome.seconds, 3), "processes": processes}


def _judged(judged: Judged) -> dict[str, Any]:
    change = judged.change
    return {
        "kind": judged.kind.value,
        "file": change.place.file,
        "line": change.place.line or None,
        "function": change.key.function,
        "process": change.key.process,
        "aspect": change.key.aspect.value,
        "subject": change.key.label,
        "before": change.before,
        "after": change.after,
        "rules": list(judged.rules),
        "reason": judged.reason,
    }
