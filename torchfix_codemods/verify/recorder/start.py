"""Where recording starts: random numbers are seeded at once, the rest waits until the program imports torch."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def start() -> None:
    """Seed what there is, and wait for torch and numpy; with `TORCHFIX_TRACES` set, record too."""
    seed = int(os.environ["TORCHFIX_SEED"])
    import random

    random.seed(seed)
    forks = itertools.count(seed + 1)
    # After a fork Python seeds `random` from the system, so that each run would differ.
    os.register_at_fork(after_in_parent=lambda: next(forks), after_in_child=lambda: random.seed(next(forks)))
    actions = {
        "numpy": lambda numpy: numpy.random.seed(seed),
        "torch": lambda torch: _with_torch(torch, seed),
        "torch._dynamo": _with_compiler,
        "torch._dynamo.trace_rules": _leave_trace_function,
    }
    sys.meta_path.insert(0, AfterImport(actions))


def _with_torch(torch: Any, seed: int) -> None:
    torch.manual_seed(seed)
    if os.environ.get("TORCHFIX_TRACES"):
        from .record import record

        record()


def _with_compiler(_: Any) -> None:
    if os.environ.get("TORCHFIX_TRACES"):
        from .forwards import COMPILER

        COMPILER.is_loaded = True


def _leave_trace_function(rules: Any) -> None:
    """Keep `torch.compile` from compiling the function that traces lines: it is slow, and makes warnings."""
    add = getattr(rules, "add", None)  # no public name: another torch may have none
    if add is not None:
        add(f"{__package__}.reached")


class AfterImport:
    """Calls a function once a module has been imported for the first time."""

    def __init__(self, actions: dict[str, Callable[[Any], None]]) -> None:
        self._actions = actions

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002  # the protocol of finders
        """The module's own spec, with a loader that calls the action afterwards."""
        action = self._actions.pop(name, None)
        if action is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # this loader belongs to this one import
        return spec
