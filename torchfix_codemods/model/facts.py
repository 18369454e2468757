"""What a value can be known to be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import ast

    from .project_names import Symbol

    Origin: TypeAlias = str | ast.ClassDef | Symbol | None


class Kind(Enum):
    """Kinds of value that rules ask about."""

    MODULE = auto()
    OPTIMIZER = auto()
    SCHEDULER = auto()
    SCALER = auto()
    LOADER = auto()
    PARAMETER = auto()
    TENSOR = auto()
    SCALAR_TENSOR = auto()
    """A tensor with no dimension."""
    PAIR = auto()
    """The named tuple (values, indices) that `max(dim)`, `sort` and `topk` return."""
    PACKED = auto()
    """A PackedSequence."""
    STATE_DICT = auto()
    NUMBER = auto()
    TEXT = auto()
    ARRAY = auto()
    SEQUENCE = auto()
    DEVICE = auto()
    OTHER = auto()
    """Known to be none of the above; an instance of a class of the file has that class as its origin."""
    UNDECIDED = auto()
    """Its own definition is being asked for: neutral when definitions are joined."""


TENSORS = frozenset({Kind.TENSOR, Kind.SCALAR_TENSOR, Kind.PARAMETER})


@dataclass(frozen=True, slots=True)
class Fact:
    """A kind with its evidence: `proven` by the code's meaning, or only likely (a name, a convention)."""

    kind: Kind
    origin: Origin = None
    """The class of a module, optimizer or other object: its dotted name, or its definition in this file or another."""
    call: ast.Call | None = None
    """The constructor call, where it is known."""
    proven: bool = True
    wrapped: bool = False
    """A module inside a wrapper that changes its state dict keys (DataParallel, torch.compile)."""

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor of any sort."""
        return self.kind in TENSORS

    def likely(self) -> Fact:
        """The same fact, without proof."""
        return replace(self, proven=False)


UNDECIDED = Fact(Kind.UNDECIDED)
TENSOR = Fact(Kind.TENSOR)
SCALAR = Fact(Kind.SCALAR_TENSOR)
PARAMETER = Fact(Kind.PARAMETER)
NUMBER = Fact(Kind.NUMBER)
TEXT = Fact(Kind.TEXT)
SEQUENCE = Fact(Kind.SEQUENCE)
ARRAY = Fact(Kind.ARRAY)
OTHER = Fact(Kind.OTHER)
PAIR = Fact(Kind.PAIR)


def join(facts: list[Fact | None]) -> Fact | None:
    """What holds of a value that has one of these facts: None as soon as one is unknown or they disagree."""
    if any(fact is None for fact in facts):
        return None
    known = [fact for fact in facts if fact is not None and fact.kind is not Kind.UNDECIDED]
    if not known:
        return UNDECIDED if facts else None
    first = known[0]
    proven = all(fact.proven for fact in known)
    if all(fact.kind is first.kind for fact in known):
        same_origin = all(fact.origin == first.origin for fact in known)
        call = first.call if all(fact.call is first.call for fact in known) else None
        wrapped = any(fact.wrapped for fact in known)
        return Fact(first.kind, first.origin if same_origin else None, call, proven, wrapped)
    if all(fact.is_tensor for fact in known):
        return Fact(Kind.TENSOR, proven=proven)
    return None
