"""Which fixes of which files may be applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine import Group


@dataclass(frozen=True, slots=True)
class Selection:
    """Fixes by file and group: either all but those that are named, or none but those."""

    named: frozenset[tuple[str, Group]] = frozenset()
    others: bool = True
    """Whether the fixes that are not named may be applied; those that are named then may not."""

    def of(self, path: str) -> Callable[[Group], bool]:
        """Whether a fix of one file may be applied."""
        return lambda group: ((path, group) in self.named) != self.others

    def part(self, path: str) -> Selection:
        """What it says of one file: equal parts have equal results."""
        return Selection(frozenset(fix for fix in self.named if fix[0] == path), self.others)
