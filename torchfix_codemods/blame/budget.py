"""How many runs may still be made."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Exhausted(Exception):
    """No run is left."""


class Budget:
    """A number of runs."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0
        self._bound = limit

    @property
    def left(self) -> int:
        """Runs that may still be made now."""
        return self._bound - self.spent

    def spend(self) -> None:
        """Take one run; raises `Exhausted`."""
        if self.left <= 0:
            raise Exhausted
        self.spent += 1

    @contextmanager
    def share(self, runs: int) -> Iterator[None]:
        """Allow no more than some runs in the block."""
        outer, self._bound = self._bound, min(self._bound, self.spent + runs)
        try:
            yield
        finally:
            self._bound = outer
