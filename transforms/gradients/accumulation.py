"""Loops that step only in some of their iterations, so that gradients add up in between."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop

_ENGINES = ("accelerate", "deepspeed", "lightning", "pytorch_lightning", "ignite", "colossalai", "fairscale", "megatron")


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A loop with a backward in each iteration, and a step in every k-th."""

    loop: Loop
    events: tuple[Event, ...]
    backward: Event
    step: Event


def accumulations(file: FileModel) -> Iterator[Accumulation]:
    """The loops that accumulate by a counter (`if (i + 1) % k == 0: optimizer.step()`); none where an engine does it."""
    if any(file.names.imports(engine) for engine in _ENGINES):
        return
    for loop in file.loops:
        if file.roles.is_framework_code(file.flow.function(loop) or loop):
            continue
        events = tuple(file.training.events(loop.body, depth=0))
        backwards = [e for e in events if e.happening is Happening.BACKWARD and is_unconditional(file, e, loop)]
        steps = [e for e in events if e.happening is Happening.STEP and _is_counted(file, e, loop)]
        if len(backwards) == 1 and len(steps) == 1 and steps[0].subject is not None:
            fact = file.fact(steps[0].subject)
            if fact is not None and fact.proven and fact.kind is Kind.OPTIMIZER:
                yield Accumulation(loop, events, backwards[0], steps[0])


def is_unconditional(file: FileModel, event: Event, loop: Loop) -> bool:
    """Whether something happens once in every iteration of a loop."""
    for ancestor in file.flow.ancestors(event.node):
        if ancestor is loop:
            return True
        if isinstance(ancestor, (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.BoolOp)):
            return False
    return False


def _is_counted(file: FileModel, event: Event, loop: Loop) -> bool:
    """Whether the only condition on a step inside its loop is a remainder."""
    tests: list[ast.expr] = []
    for ancestor in file.flow.ancestors(event.node):
        if ancestor is loop:
            break
        if isinstance(ancestor, (ast.For, ast.While)):
            return False
        if isinstance(ancestor, ast.If):
            tests.append(ancestor.test)
    return bool(tests) and all(any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(test)) for test in tests)
