"""Rule `zero-grad-breaks-accumulation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening
from torchfix_codemods.rule import Category, Rule, Safety

from .accumulation import accumulations, is_unconditional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.rule import Finding

    from .accumulation import Accumulation


class ZeroGradBreaksAccumulation(Rule):
    """Gradients that are cleared in every iteration, though the optimizer steps only in every k-th.

    ## Why
    Each `zero_grad` throws away what the iterations before it have added up: the step sees the last batch alone, and the
    others were computed for nothing.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader, k):
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            (F.mse_loss(model(x), y) / k).backward()
            if (i + 1) % k == 0:
                optimizer.step()
    ```
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader, k):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            (F.mse_loss(model(x), y) / k).backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Safety
    Only reported: either `zero_grad` belongs after the step, or the condition on the step is wrong. Optimizers that a
    library wraps (accelerate) do nothing until gradients are due, and are left alone.

    ## References
    https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """

    name = "zero-grad-breaks-accumulation"
    category = Category.GRADIENTS
    safety = Safety.REPORT
    needles = (b"torch", b"backward", b"step", b"zero_grad", b"%")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `zero_grad` calls of every iteration in loops that step by a counter."""
        for found in accumulations(file):
            for event in found.events:
                if event.happening is Happening.CLEAR and _is_same(file, event, found) and is_unconditional(file, event, found.loop):
                    name = file.source.code(found.step.subject) if found.step.subject is not None else ""
                    message = f"gradients are cleared in every iteration, but `{name}` steps only in some: clear them after the step"
                    yield self.finding(file, event.node, message)


def _is_same(file: FileModel, clear: Event, found: Accumulation) -> bool:
    """Whether the cleared gradients are those of the optimizer that steps."""
    if clear.identity is None or found.step.subject is None:
        return False
    return clear.identity == found.step.identity or clear.identity == file.optimized(found.step.subject)
