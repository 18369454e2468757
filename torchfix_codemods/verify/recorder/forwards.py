"""Which modules run, in which mode, and whether gradients are recorded: counted, never one row for a call."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable

import torch
from torch.nn.modules import module as hooks
from torch.nn.modules.loss import _Loss

from .graphs import GRAPHS
from .places import Place, caller
from .values import number_of

if TYPE_CHECKING:
    from .writer import Writer


class Compiler:
    """Whether torch's compiler has been imported: until then nothing can be compiling."""

    is_loaded = "torch._dynamo" in sys.modules


COMPILER = Compiler()


class Forwards(threading.local):
    """How deep in nested forwards this thread is, and what called the outermost."""

    def __init__(self) -> None:
        self.depth = 0
        self.place = Place()
        self.root = ""


class Recorder:
    """Counts forwards by caller, module, mode and gradient mode."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._counts: dict[tuple[Any, ...], int] = {}
        self._labels: dict[int, tuple[Callable[[], object], str]] = {}
        self._now = Forwards()
        writer.add_part("forwards", self._totals, self._counts.clear)
        writer.add_part("graphs", GRAPHS.totals, GRAPHS.clear)

    def before(self, module: torch.nn.Module, _: object) -> None:
        """Called ahead of every forward. It calls little, and is its own guard: traced calls cost twice."""
        if COMPILER.is_loaded and torch.compiler.is_compiling():
            return
        try:
            now = self._now
            if now.depth == 0:
                now.place = caller()
                self._name(module)
            now.depth += 1
            known = self._labels.get(id(module))
            label = known[1] if known and known[0]() is module else type(module).__name__
            key = (*now.place, label, module.training, torch.is_grad_enabled())
            self._counts[key] = self._counts.get(key, 0) + 1
        except Exception as error:  # noqa: BLE001  # the border
            self._writer.failed("before a forward", error)

    def after(self, module: torch.nn.Module, _: object, output: Any) -> None:
        """Called behind every forward, one that raised too."""
        if COMPILER.is_loaded and torch.compiler.is_compiling():
            return
        try:
            now = self._now
            now.depth = max(0, now.depth - 1)
            if now.depth == 0 and output is not None:
                GRAPHS.watch(output, now.place, self._labels[id(module)][1])
            if isinstance(module, _Loss):
                self._note_loss(module, output)
        except Exception as error:  # noqa: BLE001  # the border
            self._writer.failed("behind a forward", error)

    def _note_loss(self, module: torch.nn.Module, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.numel() == 1:
            place, name = self._now.place, type(module).__name__
            number, written = self._writer.number(("loss", place.file, place.function, name))
            if written:
                self._writer.row("loss", place=place.line_only, label=name, number=number, value=number_of(output))

    def _name(self, module: torch.nn.Module) -> None:
        """Name a model and all within it by class and path, once."""
        known = self._labels.get(id(module))
        if known and known[0]() is module:
            return
        root = type(module).__name__
        for path, part in module.named_modules():
            self._labels[id(part)] = (weakref.ref(part), f"{root}.{path}: {type(part).__name__}" if path else root)

    def _totals(self) -> object:
        return [[*key, count] for key, count in list(self._counts.items())]


def install(writer: Writer) -> None:
    """Set the hooks on all modules there will be."""
    recorder = Recorder(writer)
    hooks.register_module_forward_pre_hook(recorder.before)
    hooks.register_module_forward_hook(recorder.after, always_call=True)
