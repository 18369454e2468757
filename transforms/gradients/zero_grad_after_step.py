"""Rule `zero-grad-after-step`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import MoveBefore
from torchfix_codemods.effects import MAY_CLEAR_GRADIENTS
from torchfix_codemods.model import Happening
from torchfix_codemods.rule import Category, Rule, Safety

from .accumulation import ENGINES
from .placement import place_for_clearing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding


class ZeroGradAfterStep(Rule):
    """`zero_grad` that follows the step, where the documented order has it before the forward.

    ## Why
    Both orders train alike. Before the forward, gradients that something else left behind can't enter the first step,
    and after the loop the last gradients are still there to be looked at.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader):
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    ```
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Safety
    Unsafe: the same weights to the bit (SGD, AdamW), but gradients outlive the loop. Only for a loop whose body is one
    straight line of one backward, one step and one `zero_grad` of the same optimizer. Optional: select it by name.

    ## References
    https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step
    """

    name = "zero-grad-after-step"
    category = Category.GRADIENTS
    safety = Safety.UNSAFE
    effects = (MAY_CLEAR_GRADIENTS,)
    optional = True
    needles = (b"torch", b"backward", b"step", b"zero_grad")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `zero_grad` calls that directly follow the step of their optimizer."""
        if any(file.names.imports(engine) for engine in ENGINES):
            return
        for loop in file.loops:
            events = [e for e in file.training.events(loop.body) if e.happening in _ORDER]
            if [e.happening for e in events] != _ORDER or not all(e.is_here for e in events):
                continue
            backward, step, clear = events
            statement = _straight(file, loop, events)
            if statement is not None and _is_of_the_step(file, clear, step) and not _reads_gradients(file, loop):
                target = place_for_clearing(file, loop, backward.node)
                message = f"`{file.source.code(clear.node)}` after the step: the documented order has it before the forward"
                yield self.finding(file, statement, message, MoveBefore(file.source.span(statement), file.source.span(target)))


_ORDER = [Happening.BACKWARD, Happening.STEP, Happening.CLEAR]


def _straight(file: FileModel, loop: Loop, events: list[Event]) -> ast.stmt | None:
    """The statement that clears, when nothing decides over it, and nothing but a scaler or scheduler stands between it and the step."""
    backward, step, clear = [next((i for i, s in enumerate(loop.body) if s is file.flow.statement(e.node)), -1) for e in events]
    block = loop.body
    if min(backward, step) < 0 or not isinstance(block[clear], ast.Expr) or clear < step:
        return None
    straight = all(isinstance(s, (ast.Expr, ast.Assign, ast.AugAssign)) for s in block[backward : clear + 1])
    return block[clear] if straight and all(_is_upkeep(s) for s in block[step + 1 : clear]) else None


def _is_upkeep(statement: ast.stmt) -> bool:
    """`scaler.update()` and `scheduler.step()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in {"update", "step"}


def _is_of_the_step(file: FileModel, clear: Event, step: Event) -> bool:
    if clear.identity is None or step.subject is None:
        return False
    return clear.identity in (step.identity, file.optimized(step.subject))


def _reads_gradients(file: FileModel, loop: Loop) -> bool:
    """Whether gradients are looked at in the loop's function: some are None now where they would be there, and the other way round."""
    function = file.flow.function(loop)
    return any(file.flow.function(node) is function for node in file.attributes("grad"))
