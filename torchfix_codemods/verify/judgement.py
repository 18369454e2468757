"""Which changes of behaviour the rules have promised, which follow from those, and which nobody promised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from ..effects import CHANGES_VALUES, Aspect, Effect, Relation
from ..rule import Safety

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .changes import Change

_BETTER = {(aspect, Relation.LESS) for aspect in (Aspect.STALE, Aspect.EMPTY, Aspect.GRAPH, Aspect.NODES, Aspect.WARNINGS, Aspect.RAISED)}
"""Nobody minds when there is less of this."""
_MODULES = frozenset({Aspect.MODE, Aspect.GRADIENTS, Aspect.FORWARDS})
_CAUSES = (
    (frozenset({Aspect.OUTPUT, Aspect.SAVES, Aspect.LOADS}), frozenset({Aspect.VALUES}), "values have changed, as promised"),
    (frozenset({Aspect.GRAPH, Aspect.NODES}), _MODULES, "modules run in another mode, or others run, as promised"),
    (frozenset({Aspect.OUTPUT}), frozenset({Aspect.SAVES, Aspect.LOADS}), "files hold something else, as promised"),
)
"""What a program may do otherwise (print a line, keep the best model) because something else was promised to change, and why."""


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
        if verdict.kind in {Kind.REGRESSION, Kind.BETTER}:
            reasons = _consequences if verdict.kind is Kind.REGRESSION else _of_an_ending
            reason = next(reasons(change, judged), "")
            if reason:
                judged[change] = Judged(change, Kind.FOLLOWS, (), reason)
    return [_of_the_exception(verdict, judged) for verdict in judged.values()]


def _of_the_exception(verdict: Judged, judged: Mapping[Change, Judged]) -> Judged:
    """That the command succeeds has no place of its own: it is owed to the fixes that its exception is gone by."""
    if verdict.kind is not Kind.PROMISED or verdict.change.key.label != "command":
        return verdict
    ends = [v for c, v in judged.items() if c.key.label == "ends with" and c.is_gone and v.kind is Kind.PROMISED]
    return replace(verdict, rules=tuple(dict.fromkeys(rule for end in ends for rule in end.rules)) or verdict.rules)


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
    within = {without_owner(function) for function in change.within}
    around = [fix for fix, _ in able if f"{fix.file}:{fix.function}" in within]
    return around or [fix for fix, effect in able if not effect.within]


def explains(effect: Effect, change: Change) -> bool:
    """Whether a change is what an effect says, wherever it is."""
    aspect = Aspect.RAISED if change.key.aspect is Aspect.OUTCOME and change.is_gone else change.key.aspect
    relation = Relation.LESS if change.key.aspect is Aspect.OUTCOME else change.relation
    if change.is_gone and aspect in {Aspect.SAVES, Aspect.LOADS}:
        return False
    if (effect.aspect, effect.relation) != (aspect, relation) and not _replaces(effect, change):
        return False
    if effect.to and effect.to != change.to:
        return False
    return not effect.modules or change.key.label.rpartition(": ")[2] in effect.modules


def _replaces(effect: Effect, change: Change) -> bool:
    """Modules that come or go."""
    return effect.aspect is change.key.aspect is Aspect.FORWARDS and effect.relation is Relation.CHANGES


def without_owner(function: str) -> str:
    """`file:function` without the classes and functions around the function."""
    file, _, name = function.rpartition(":")
    return f"{file}:{name.rpartition('.')[2]}"


def _consequences(change: Change, judged: Mapping[Change, Judged]) -> Iterator[str]:
    """Why a change that no rule promises follows from others."""
    aspect = change.key.aspect
    others = [(c, verdict.kind) for c, verdict in judged.items() if c is not change]
    yield from _of_an_ending(change, judged)
    accepted = [c for c, kind in others if kind in {Kind.PROMISED, Kind.BETTER}]
    gone = [c for c in accepted if c.key.aspect is Aspect.RAISED]
    if gone and _may_go_on(change, [c for c, _ in others]):
        yield f"the program goes on where it raised {gone[0].key.label}"
    promised = {c.key.aspect for c, kind in others if kind is Kind.PROMISED}
    for aspects, causes, reason in _CAUSES:
        if aspect in aspects and promised & causes and not change.is_gone:
            yield reason


def _of_an_ending(change: Change, judged: Iterable[Change]) -> Iterator[str]:
    """What is missing, and the exit code, when the program ends with an exception that it did not end with before."""
    ends = [c for c in judged if c.key.aspect is Aspect.OUTCOME and c.key.label == "ends with" and not c.is_gone and c is not change]
    if not ends:
        return
    kind = ends[0].after.partition(":")[0]
    is_the_same = change.key.aspect is Aspect.OUTCOME or (change.key.aspect is Aspect.RAISED and change.key.label == kind)
    is_less = change.is_gone or change.relation in {Relation.LESS, Relation.BECOMES} or change.key.aspect is Aspect.OUTPUT
    if is_the_same or is_less:
        yield f"the program ends with {kind}"


def _may_go_on(change: Change, others: Sequence[Change]) -> bool:
    """Whether a change may come from code that is reached since an exception is gone.

    New exceptions only where the program ended with one before: it may have had them all along, further on.
    """
    if change.key.aspect in {Aspect.RAISED, Aspect.OUTCOME}:
        return any(c.key.aspect is Aspect.OUTCOME and not c.is_new for c in [*others, change])
    grows = change.is_new or change.relation in {Relation.MORE, Relation.CHANGES}
    return grows and not change.is_gone and change.key.aspect not in {Aspect.VALUES, Aspect.STALE, Aspect.EMPTY}


def _suspects(change: Change, fixes: Sequence[Applied]) -> tuple[str, ...]:
    """The fixes that are nearest: in the functions that run, else in the file, else all that were run."""
    within = {without_owner(function) for function in change.within}
    near = [fix for fix in fixes if f"{fix.file}:{fix.function}" in within and fix.function != "<module>"]
    near = near or [fix for fix in fixes if fix.file == change.key.file]
    near = near or [fix for fix in fixes if fix.reached is not False] or list(fixes)
    return tuple(dict.fromkeys(f"{fix.rule} ({fix.place})" for fix in near))
