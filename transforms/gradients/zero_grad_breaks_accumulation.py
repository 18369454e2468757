"""Rule `zero-grad-breaks-accumulation`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .accumulation import accumulations, clears, conditions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.rule import Finding

    from .accumulation import Accumulation


class ZeroGradBreaksAccumulation(Rule):
    """`zero_grad` in every round of a loop whose optimizer steps in every k-th round only.

    ## Why
    The gradients of k batches are to add up before a step. Cleared in each round, those of the last batch alone are left,
    and the work for the others is lost.

    ## Example
    ```python
    import torch


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batches, k: int):
        for i, x in enumerate(batches):
            optimizer.zero_grad()
            (model(x).mean() / k).backward()
            if (i + 1) % k == 0:
                optimizer.step()
    ```
    ```python
    import torch


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batches, k: int):
        optimizer.zero_grad()
        for i, x in enumerate(batches):
            (model(x).mean() / k).backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Safety
    Report: either `zero_grad` goes beside the step, or the step belongs into every round, and only its author knows
    which. Silent for optimizers of other parameters, for wrappers that skip both calls themselves (accelerate), and where
    the step is skipped for another reason than its turn.

    ## References
    https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """

    name = "zero-grad-breaks-accumulation"
    category = Category.GRADIENTS
    safety = Safety.REPORT
    needles = (b"torch", b"backward", b"zero_grad", b"step")
    pattern = re.compile(rb"%|==|>=")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield what clears in each round the gradients that a later step should gather."""
        for accumulation in accumulations(file):
            for clear in clears(file, accumulation):
                if _runs_in_every_round(file, clear, accumulation) and _is_of_the_step(file, clear, accumulation):
                    step, k = file.source.code(accumulation.step.node), file.source.code(accumulation.period)
                    message = f"gradients are cleared in each round, but `{step}` should see those of `{k}` rounds: clear them directly after the step"
                    yield self.finding(file, clear.node, message)


def _runs_in_every_round(file: FileModel, clear: Event, accumulation: Accumulation) -> bool:
    """Whether nothing but what all backwards depend on decides over it; in a function that is called, nothing at all."""
    around = [conditions(file, backward.node) for backward in accumulation.backwards]
    same_loop = file.flow.loops(clear.node)[:1] == file.flow.loops(accumulation.step.node)[:1]
    free = all(condition in conditions_of for condition in conditions(file, clear.node) for conditions_of in around)
    return same_loop and free and (clear.is_here or not conditions(file, clear.origin))


def _is_of_the_step(file: FileModel, clear: Event, accumulation: Accumulation) -> bool:
    """Whether the parameters that are cleared are those of the step."""
    step = accumulation.step
    if clear.subject is None or clear.identity is None or step.subject is None or step.identity is None:
        return False
    if clear.identity == step.identity:
        return True
    fact = file.fact(clear.subject)
    if fact is None or fact.kind is not Kind.MODULE or file.training.is_optimizer(clear.subject):
        return False
    root = file.optimized(step.subject)
    # An optimizer from elsewhere: the model that is cleared beside it is taken for the one that it moves.
    return root == clear.identity if root is not None else file.fact(step.subject) is None or not _is_made_here(file, step)


def _is_made_here(file: FileModel, step: Event) -> bool:
    fact = file.fact(step.subject) if step.subject is not None else None
    return fact is not None and fact.call is not None
