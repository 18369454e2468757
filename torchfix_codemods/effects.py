"""What a fix is promised to show in the behaviour of a program that it is applied to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Aspect(str, Enum):
    """A side of what a program does that is recorded while it runs; the values are the words for people."""

    MODE = "mode at forward"
    GRADIENTS = "gradients at forward"
    FORWARDS = "forwards"
    BACKWARDS = "backward passes"
    STEPS = "optimizer steps"
    STALE = "steps with stale gradients"
    EMPTY = "steps without gradients"
    VALUES = "values"
    GRAPH = "bytes saved for backward"
    NODES = "graph nodes alive"
    SAVES = "saved"
    LOADS = "loaded"
    WARNINGS = "warnings"
    RAISED = "exceptions"
    OUTCOME = "outcome"
    OUTPUT = "printed text"


class Relation(str, Enum):
    """How an aspect is after the fix."""

    LESS = "less"
    MORE = "more"
    BECOMES = "becomes"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a fix changes."""

    aspect: Aspect
    relation: Relation
    to: str = ""
    """What the aspect becomes, where the relation says so."""
    modules: tuple[str, ...] = ()
    """The classes whose forwards come or go; all when empty."""
    within: bool = False
    """Whether it shows only in the function around the fix and in what that calls."""
    shows: bool = False
    """Whether it must be seen wherever the fix is run; otherwise it may be."""


_A, _R = Aspect, Relation

RUNS_IN_EVAL_MODE = Effect(_A.MODE, _R.BECOMES, "eval", within=True, shows=True)
MAY_RUN_IN_EVAL_MODE = Effect(_A.MODE, _R.BECOMES, "eval", within=True)
RUNS_IN_TRAIN_MODE = Effect(_A.MODE, _R.BECOMES, "train")
RECORDS_NO_GRADIENTS = Effect(_A.GRADIENTS, _R.BECOMES, "off", within=True, shows=True)
RECORDS_GRADIENTS = Effect(_A.GRADIENTS, _R.BECOMES, "on")
SAVES_LESS_FOR_BACKWARD = Effect(_A.GRAPH, _R.LESS, within=True)
FREES_GRAPHS = Effect(_A.NODES, _R.LESS, shows=True)
MAY_FREE_GRAPHS = Effect(_A.NODES, _R.LESS)
CLEARS_GRADIENTS = Effect(_A.STALE, _R.LESS, shows=True)
MAY_CLEAR_GRADIENTS = Effect(_A.STALE, _R.LESS)
STEPS_HAVE_GRADIENTS = Effect(_A.EMPTY, _R.LESS, shows=True)
MAY_GIVE_GRADIENTS = Effect(_A.EMPTY, _R.LESS)
MORE_STEPS = Effect(_A.STEPS, _R.MORE)
MORE_BACKWARDS = Effect(_A.BACKWARDS, _R.MORE)
SAVES_ANOTHER_KIND = Effect(_A.SAVES, _R.CHANGES, shows=True)
LOADS_OTHERWISE = Effect(_A.LOADS, _R.CHANGES)
LOADS_WITH_OPTIONS = Effect(_A.LOADS, _R.CHANGES, shows=True)
WARNS_LESS = Effect(_A.WARNINGS, _R.LESS)
RAISES_LESS = Effect(_A.RAISED, _R.LESS)
CHANGES_VALUES = Effect(_A.VALUES, _R.CHANGES)


def replaces(*modules: str) -> Effect:
    """Modules of these classes come, or go."""
    return Effect(Aspect.FORWARDS, Relation.CHANGES, modules=modules)
