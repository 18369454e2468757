"""What the files are with some of the fixes: each file is rewritten once for each selection of its own fixes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..workspace.selection import Selection
from ..workspace.settle import settled
from ..workspace.tasks import RewriteTask, Rewrote

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from ..workspace.run import Failure
    from .units import Unit


@dataclass(frozen=True)
class _Remembering(RewriteTask):
    """Rewrites each file once for the same question."""

    memory: dict[Hashable, Rewrote | Failure] = field(default_factory=dict)

    def __call__(self, path: str) -> Rewrote | Failure:
        key = (path, self.selection.part(path), self.dropped)
        if key not in self.memory:
            self.memory[key] = super().__call__(path)
        return self.memory[key]


class Rewrites:
    """The files that have fixes, rewritten with those that are asked for."""

    def __init__(self, task: RewriteTask, paths: Sequence[str], may_write: Callable[[str], bool]) -> None:
        self._task = _Remembering(task.rules, task.minimum, task.surroundings)
        self._paths, self._may_write = paths, may_write

    def only(self, units: Iterable[Unit]) -> list[Rewrote | Failure]:
        """The files with these fixes and no others."""
        return self._selected(units, others=False)

    def without(self, units: Iterable[Unit]) -> list[Rewrote | Failure]:
        """The files with all fixes but these."""
        return self._selected(units, others=True)

    def _selected(self, units: Iterable[Unit], others: bool) -> list[Rewrote | Failure]:
        selection = Selection(frozenset(fix for unit in units for fix in unit.fixes), others)
        task = replace(self._task, selection=selection)
        return list(settled(task, map(task, self._paths), self._may_write))


def changes(results: Iterable[Rewrote | Failure]) -> dict[str, bytes]:
    """The new content of the files that change."""
    return {result.path: result.after for result in results if isinstance(result, Rewrote) and result.after != result.before}
