"""Backward passes: the value that each starts from, and whether it adds to gradients that a step has used already."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import torch

from .graphs import GRAPHS
from .places import caller
from .values import are_filled, number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .writer import Writer


class Staleness:
    """Which gradients of the coming step hold a part that an earlier step has used.

    A gradient is stale when a backward adds to what the last step left: the same tensor, not zero, changed by that backward.
    """

    def __init__(self) -> None:
        self._used: dict[int, tuple[Any, Any]] = {}
        self._stale: set[int] = set()

    def stepped(self, parameters: Iterable[torch.Tensor]) -> None:
        """A step has used the gradients of these parameters."""
        for parameter in parameters:
            self._stale.discard(id(parameter))
            if parameter.grad is not None:
                self._used[id(parameter)] = (weakref.ref(parameter), weakref.ref(parameter.grad))

    def before(self) -> list[tuple[int, torch.Tensor, int]]:
        """Used gradients that are still there and not zero, ahead of a backward."""
        left = self._left()
        there = [pair for pair, filled in zip(left, are_filled([gradient for _, gradient in left])) if filled]
        self._stale &= {key for key, _ in there}
        return [(key, gradient, gradient._version) for key, gradient in there]  # noqa: SLF001  # the documented counter

    def after(self, before: Sequence[tuple[int, torch.Tensor, int]]) -> None:
        """Those that the backward has added to are stale."""
        self._stale |= {key for key, gradient, version in before if gradient._version != version}  # noqa: SLF001  # torch has no public name for it

    def count(self, parameters: Iterable[torch.Tensor]) -> int:
        """How many of these parameters have a stale gradient now."""
        there = {key for key, _ in self._left()}
        return sum(id(parameter) in self._stale and id(parameter) in there for parameter in parameters)

    def _left(self) -> list[tuple[int, torch.Tensor]]:
        left = []
        for key, (parameter_of, gradient_of) in list(self._used.items()):
            parameter, gradient = parameter_of(), gradient_of()
            if parameter is None or gradient is None or parameter.grad is not gradient:
                del self._used[key]
            else:
                left.append((key, gradient))
        return left


class Backwards:
    """Counts backward passes by caller."""

    def __init__(self, writer: Writer, stale: Staleness) -> None:
        self._writer, self._stale = writer, stale
        self._counts: dict[tuple[Any, ...], int] = {}
        writer.add_part("backwards", lambda: [[*key, count] for key, count in list(self._counts.items())], self._counts.clear)

    def before(self, tensors: Any) -> object:
        """Note the value, the size of the graph, and the gradients that are there already."""
        place = caller()
        self._counts[place] = self._counts.get(place, 0) + 1
        GRAPHS.watch(tensors, place, "backward")
        number, written = self._writer.number(("backward", place.file, place.function))
        if written and isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
            self._writer.row("backward", place=place.line_only, label="", number=number, value=number_of(tensors))
        return self._stale.before()

    def after(self, there: Any) -> None:
        """Note which gradients were added to."""
        self._stale.after(there or ())


def install(writer: Writer, stale: Staleness) -> None:
    """Stand in for `torch.autograd.backward`, which `Tensor.backward` calls too."""
    recorder = Backwards(writer, stale)
    before, after, original = writer.guarded(recorder.before), writer.guarded(recorder.after), torch.autograd.backward

    @functools.wraps(original)
    def backward(tensors: Any, *arguments: Any, **keywords: Any) -> Any:
        there = before(tensors)
        result = original(tensors, *arguments, **keywords)
        after(there)
        return result

    torch.autograd.backward = backward
