"""Which changes of behaviour the rules have promised, which follow from those, and which nobody promised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ..effects import CHANGES_VALUES, Aspect, Effect, Relation
from ..rule import Safety

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .changes import Change

_BETTER = {(aspect, Relation.LESS) for aspect in (Aspect.STALE, Aspect.EMPTY, Aspect.GRAPH, Aspect.NODES, Aspect.WARNINGS, Aspect.RAISED)}
"""Nobody minds when there is less of this."""
_OF_VALUES = frozenset({Aspect.OUTPUT, Aspect.SAVES, Aspect.LOADS})
"""What a program may do otherwise because its values are others: print a line, or keep the best model."""
_OF_STATES = frozenset({Aspect.GRAPH, Aspect.NODES, Aspect.VALUES})
"""What depends on the mode, and on whether gradients are recorded."""
_AMOUNTS = frozenset({Aspect.FORWARDS, Aspect.BACKWARDS, Aspect.STEPS, Aspect.SAVES, Aspect.LOADS, Aspect.WARNINGS})


class Kind(str, Enum):
    """What a change is."""

    PROMISED = "promised"
    FOLLOWS = "follows"
    BETTER = "better"
    REGRESSION = "regression"


@dataclass(frozen=True)
class Applied:
    """A fix, as a judge needs it."""

    rule: str
    safety: Safety
    effects: tuple[Effect, ...]
    file: str
    function: str
    line: int
    """In the original file."""
    message: str = ""
    reached: bool | None = None
    """Whether the fixed code was run; None when that isn't known."""

    @property
    def promises(self) -> tuple[Effect, ...]:
        """The effects, with those that every fix of its safety may have."""
        return self.effects if self.safety is Safety.SAFE else (*self.effects, CHANGES_VALUES)

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Judged:
    """A change, what it is, and why."""

    change: Change
    kind: Kind
    rules: tuple[str, ...] = ()
    """Those that have promised it, or (of a regression) those with a fix around its place."""
    reason: str = ""


def judge(changes: Sequence[Change], fixes: Sequence[Applied]) -> list[Judged]:
    """Each change with its kind."""
    judged = {change: _first_look(change, fixes) for change in changes}
    for change, verdict in judged.items():
        if verdict.kind is Kind.REGRESSION:
            reason = next(_consequences(change, judged), "")
            if reason:
                judged[change] = Judged(change, Kind.FOLLOWS, (), reason)
    return list(judged.values())


def _first_look(change: Change, fixes: Sequence[Applied]) -> Judged:
    promised = _promising(change, [fix for fix in fixes if fix.reached is not False])
    if promised:
        return Judged(change, Kind.PROMISED, tuple(dict.fromkeys(fix.rule for fix in promised)))
    if (change.key.aspect, change.relation) in _BETTER or (change.key.aspect is Aspect.OUTCOME and change.is_gone):
        return Judged(change, Kind.BETTER)
    return Judged(change, Kind.REGRESSION, _suspects(change, fixes))


def _promising(change: Change, fixes: Sequence[Applied]) -> list[Applied]:
    """The fixes that promise a change: those around its place, else those whose effect may show elsewhere."""
    able = [(fix, effect) for fix in fixes for effect in fix.promises if explains(effect, change)]
    within = {_bare(function) for function in change.within}
    around = [fix for fix, _ in able if f"{fix.file}:{fix.function}" in within]
    return around or [fix for fix, effect in able if not effect.within]


def explains(effect: Effect, change: Change) -> bool:
    """Whether a change is what an effect says, wherever it is."""
    aspect = Aspect.RAISED if change.key.aspect is Aspect.OUTCOME and change.is_gone else change.key.aspect
    relation = Relation.LESS if change.key.aspect is Aspect.OUTCOME else change.relation
    if (effect.aspect, effect.relation) != (aspect, relation) and not _replaces(effect, change):
        return False
    if effect.to and effect.to != change.to:
        return False
    return not effect.modules or change.key.label.rpartition(": ")[2] in effect.modules


def _replaces(effect: Effect, change: Change) -> bool:
    """Modules that come or go."""
    return effect.aspect is change.key.aspect is Aspect.FORWARDS and effect.relation is Relation.CHANGES


def _bare(function: str) -> str:
    """`file:function` without the classes and functions around the function."""
    file, _, name = function.rpartition(":")
    return f"{file}:{name.rpartition('.')[2]}"


def _consequences(change: Change, judged: dict[Change, Judged]) -> Iterator[str]:
    """Why a change that no rule promises follows from others."""
    aspect = change.key.aspect
    gone = [
        c for c, v in judged.items() if v.kind is not Kind.REGRESSION and c.key.aspect in {Aspect.RAISED, Aspect.OUTCOME} and c != change
    ]
    if (
        gone
        and (change.is_new or change.relation in {Relation.MORE, Relation.CHANGES})
        and aspect not in {Aspect.VALUES, Aspect.STALE, Aspect.EMPTY}
    ):
        yield f"the program goes on where it raised {gone[0].key.label if gone[0].key.aspect is Aspect.RAISED else gone[0].before.partition(':')[0]}"
    promised = [c for c, v in judged.items() if v.kind is Kind.PROMISED]
    if aspect in _OF_VALUES and not change.is_gone and any(c.key.aspect is Aspect.VALUES for c in promised):
        yield "values have changed, as promised"
    if aspect in _OF_STATES and any(c.key.aspect in {Aspect.MODE, Aspect.GRADIENTS, Aspect.FORWARDS} for c in promised):
        if aspect is not Aspect.VALUES:
            yield "modules run in another mode, or others run, as promised"
    if aspect is Aspect.OUTPUT and any(c.key.aspect in {Aspect.SAVES, Aspect.LOADS} for c in promised):
        yield "files hold something else, as promised"
    raised = [c for c in judged if c.key.aspect is Aspect.OUTCOME and not c.is_gone and c != change]
    if raised and (change.is_gone or change.relation is Relation.LESS or aspect is Aspect.OUTPUT):
        yield f"the program ends with {raised[0].after.partition(':')[0]}"


def _suspects(change: Change, fixes: Sequence[Applied]) -> tuple[str, ...]:
    """The fixes that are nearest: in the functions that run, else in the file, else all that were run."""
    within = {_bare(function) for function in change.within}
    near = [fix for fix in fixes if f"{fix.file}:{fix.function}" in within and fix.function != "<module>"]
    near = near or [fix for fix in fixes if fix.file == change.key.file]
    near = near or [fix for fix in fixes if fix.reached is not False]
    return tuple(dict.fromkeys(f"{fix.rule} ({fix.place})" for fix in near))
