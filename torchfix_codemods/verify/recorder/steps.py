"""Optimizer steps: gradients before, parameters after, and what the process holds."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import torch
from torch.optim import optimizer as hooks

from .graphs import GRAPHS
from .places import Place, caller
from .values import digest_of, norm_of, random_state, resident_memory

if TYPE_CHECKING:
    from .backwards import Staleness
    from .writer import Writer


class _Begun(NamedTuple):
    """A step that is going on."""

    optimizer: Callable[[], Any]
    place: Place
    number: int
    values: dict[str, Any] | None
    """What its row will hold; None when it gets none."""


class Steps:
    """Counts steps by caller and optimizer."""

    def __init__(self, writer: Writer, stale: Staleness) -> None:
        self._writer, self._stale = writer, stale
        self._labels: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._kinds: dict[str, int] = {}
        self._counts: dict[tuple[Any, ...], list[int]] = {}
        self._begun: dict[int, _Begun] = {}
        writer.add_part("steps", lambda: [[*key, *counts] for key, counts in list(self._counts.items())], self._counts.clear)

    def before(self, optimizer: Any, *_: object) -> None:
        """Look at the gradients that the step is about to use."""
        place, label = caller(), self._label(optimizer)
        parameters = _parameters(optimizer)
        stale = self._stale.count(parameters)
        counts = self._counts.setdefault((*place, label), [0, 0])
        counts[0] += 1
        counts[1] += stale > 0
        number, written = self._writer.number(("step", place.file, place.function, label))
        gradients = _gradients(parameters) if written else {}
        # By optimizer: one may step inside another, or in another thread.
        self._begun[id(optimizer)] = _Begun(weakref.ref(optimizer), place, number, {"stale": stale, **gradients} if written else None)

    def after(self, optimizer: Any, *_: object) -> None:
        """Look at the parameters that the step has made."""
        parameters = _parameters(optimizer)
        begun = self._begun.pop(id(optimizer), None)
        self._stale.stepped(parameters)
        if begun is None or begun.optimizer() is not optimizer or begun.values is None:
            return
        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0
        self._writer.row(
            "step", place=begun.place.line_only, label=self._label(optimizer), number=begun.number, **begun.values, digest=digest_of(parameters),
            rate=_plain_rate(optimizer), random=random_state(), nodes=GRAPHS.alive, memory=resident_memory(), cuda=peak,
        )  # fmt: skip

    def _label(self, optimizer: Any) -> str:
        """The class of an optimizer, with its number among those of its class."""
        if optimizer not in self._labels:
            kind = type(optimizer).__name__
            number = self._kinds[kind] = self._kinds.get(kind, 0) + 1
            self._labels[optimizer] = kind if number == 1 else f"{kind} {number}"
        return self._labels[optimizer]


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]


def _gradients(parameters: list[torch.Tensor]) -> dict[str, Any]:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm, zero = norm_of(gradients)
    return {"norm": norm, "none": len(parameters) - len(gradients), "zero": zero, "parameters": len(parameters)}


def _plain_rate(optimizer: Any) -> float | None:
    rate = optimizer.param_groups[0].get("lr")
    return rate if rate is None else float(rate)


def install(writer: Writer, stale: Staleness) -> None:
    """Set the hooks on all optimizers there will be."""
    recorder = Steps(writer, stale)
    hooks.register_optimizer_step_pre_hook(writer.guarded(recorder.before))
    hooks.register_optimizer_step_post_hook(writer.guarded(recorder.after))
