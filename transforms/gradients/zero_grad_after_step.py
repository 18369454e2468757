"""Rule `zero-grad-after-step`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import MoveBefore
from torchfix_codemods.model import Happening
from torchfix_codemods.rule import Category, Rule, Safety

from .placement import place_for_clearing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
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
    optional = True
    needles = (b"torch", b"backward", b"step", b"zero_grad")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `zero_grad` calls that directly follow the step of their optimizer."""
        for loop in file.loops:
            events = [e for e in file.training.events(loop.body) if e.happening in _ORDER]
            if [e.happening for e in events] != _ORDER or not all(e.is_here for e in events):
                continue
            backward, step, clear = events
            places = [file.flow.statement(e.node) for e in events]
            index = next((i for i, s in enumerate(loop.body) if s is places[1]), -1)
            straight = all(file.parent(s) is loop for s in places) and loop.body[index + 1 : index + 2] == [places[2]]
            if straight and clear.identity is not None and clear.identity == step.identity and isinstance(places[2], ast.Expr):
                target = place_for_clearing(file, loop, backward.node)
                message = "zero_grad after the step: the documented order has it before the forward"
                yield self.finding(file, places[2], message, MoveBefore(file.source.span(places[2]), file.source.span(target)))


_ORDER = [Happening.BACKWARD, Happening.STEP, Happening.CLEAR]
