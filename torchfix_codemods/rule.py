"""What every rule is: a name for a problem, a way to find it, and the edits that mend it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    import ast
    import re
    from collections.abc import Iterator

    from .edits import Edit
    from .effects import Effect
    from .model import FileModel
    from .source import Position, Span


class Safety(IntEnum):
    """How far a fix may be trusted; ordered, so that a threshold selects."""

    REPORT = 0
    """No automatic fix is right: the message says what to do."""
    UNSAFE = 1
    """Changes behaviour, in the documented and intended way."""
    SAFE = 2
    """Values provably the same, or an error becomes the documented behaviour."""

    @property
    def label(self) -> str:
        """The word shown to users."""
        return self.name.lower()


class Category(str, Enum):
    """The families of rules; a folder of `transforms/` each."""

    MODES = "modes"
    GRADIENTS = "gradients"
    MEMORY = "memory"
    INPLACE = "inplace"
    LOSSES = "losses"
    SCALARS = "scalars"
    DEVICES = "devices"
    DATALOADING = "dataloading"
    CHECKPOINTS = "checkpoints"
    AMP = "amp"
    MIGRATIONS = "migrations"


class Partners(NamedTuple):
    """Fixes in several files that hold only together: all files apply theirs, or none does."""

    key: str
    """The same text in all of them."""
    paths: tuple[str, ...]
    """The other files, absolute."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that departs from the documented pattern; `edits` is one atomic group, empty for a report."""

    rule: str
    span: Span
    position: Position
    message: str
    safety: Safety
    edits: tuple[Edit, ...] = ()
    partners: Partners | None = None
    scope: str = ""
    """The functions and classes around it, outermost first: `Trainer.fit`; empty at the top level of a file."""


class Rule(ABC):
    """One problem. Subclasses are stateless; the docstring has the sections Why, Example, Safety and References."""

    name: ClassVar[str]
    category: ClassVar[Category]
    safety: ClassVar[Safety]
    """The best safety that a finding of this rule can have."""
    needles: ClassVar[tuple[bytes, ...]] = (b"torch",)
    """Byte strings that all occur in every file with a finding: the others are not even parsed."""
    optional: ClassVar[bool] = False
    """Whether the rule is a matter of taste or of much noise, and runs only for those who select it by its name."""
    pattern: ClassVar[re.Pattern[bytes] | None] = None
    """What also matches in every file with a finding, where strings alone say too little."""

    effects: ClassVar[tuple[Effect, ...]] = ()
    """What a fix shows in the behaviour of a program; beyond that a safe one changes nothing, and an unsafe one values at most."""

    def may_find(self, data: bytes) -> bool:
        """Whether the text of a file (in any encoding that holds ASCII) lets the rule find anything in it."""
        return all(needle in data for needle in self.needles) and (self.pattern is None or self.pattern.search(data) is not None)

    @abstractmethod
    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the findings of one file, in any order."""

    def finding(
        self,
        file: FileModel,
        node: ast.expr | ast.stmt,
        message: str,
        *edits: Edit,
        safety: Safety | None = None,
        partners: Partners | None = None,
    ) -> Finding:
        """A finding at `node`; without edits it is a report, with edits its safety is the rule's unless told."""
        if not file.is_located(node):
            node, edits = file.flow.statement(node), ()
        span = file.source.span(node)
        level = Safety.REPORT if not edits else self.safety if safety is None else safety
        position, shared = file.source.position(span.start), partners if edits else None
        return Finding(self.name, span, position, message, level, edits, shared, file.scope(node))
