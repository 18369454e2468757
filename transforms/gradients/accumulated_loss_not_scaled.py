"""Rule `accumulated-loss-not-scaled`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening
from torchfix_codemods.model.flow import LOOPS
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

from .accumulation import accumulations, clears, conditions, loops_before_a_step
from .mean_losses import is_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.rule import Finding

    from .accumulation import Region

_COUNT_NAME = re.compile(r"accum|micro|grad_steps|chunks", re.IGNORECASE)
"""How the number of gathered batches is called, whatever its name is beside the step."""
_PARTS = re.compile(r"chunk|micro|batch|load|split|accum|part", re.IGNORECASE)
"""What is gone through in parts: losses of tasks, layers or time steps are several objectives, and their sum is meant."""


class AccumulatedLossNotScaled(Rule):
    """Mean losses of several batches that are added up to one step, without being divided by their number.

    ## Why
    k backward passes of a mean loss give k times the gradient of their common mean: the step is k times as long as one
    on the whole batch, which is a larger learning rate in disguise.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader, k):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader, k):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = F.mse_loss(model(x), y) / k
            loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Safety
    Only reported: the learning rate may be tuned to it, and for batches of unequal size a sum divided by the number of
    samples is right, not a division by k. Any division of the loss, of gradients or of the rate silences the rule.

    ## References
    https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """

    name = "accumulated-loss-not-scaled"
    category = Category.GRADIENTS
    safety = Safety.REPORT
    needles = (b"torch", b"backward", b"step")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the backwards of mean losses that nothing divides before their gradients are stepped along."""
        for backwards, region, period in _gatherings(file):
            loss = backwards[0].subject
            if loss is None or not is_mean(file, loss) or _is_scaled(file, region, backwards, period):
                continue
            number, times = (
                ("their number", "") if period is None else (f"`{file.source.code(period)}`", f", {file.source.code(period)} times as long")
            )
            options = f"divide it by {number}, or sum (reduction='sum') and divide by the number of samples"
            message = f"mean losses of several batches add up to one step{times}: {options}; keep it if the learning rate is tuned to it"
            yield self.finding(file, backwards[0].node, message)


def _gatherings(file: FileModel) -> Iterator[tuple[list[Event], Region, ast.expr | None]]:
    """Backwards whose gradients add up, where they run, and over how many they do."""
    for accumulation in accumulations(file):
        gathered = [event for event in clears(file, accumulation) if not conditions(file, event.node)]
        if not gathered:
            yield accumulation.backwards, accumulation.region, accumulation.period
    for loop, backward in loops_before_a_step(file):
        source = ast.unparse(loop.iter) if isinstance(loop, ast.For) else ""
        if _PARTS.search(source):
            yield [backward], loop, None


def _is_scaled(file: FileModel, region: Region, backwards: list[Event], period: ast.expr | None) -> bool:
    """Whether something divides the loss or a gradient, or anything by the number of batches: a rate, a weight."""
    period_name = _last_name(period) if period is not None else ""
    if any(isinstance(b.origin, ast.Call) and b.origin.args and b.origin.args[0] is not b.subject for b in backwards):
        return True  # backward(weight)
    losses = {ast.unparse(event.subject) for event in backwards if event.subject is not None}
    for node in [*file.index.all(ast.BinOp), *file.index.all(ast.AugAssign), *file.index.all(ast.Call)]:
        divided, divisor = _division(node)
        if divided is None or divisor is None:
            continue
        name = _last_name(divisor)
        by_count = (name and name == period_name) or _COUNT_NAME.search(name) or ".grad" in ast.unparse(divided)
        if by_count and not _is_of_another_training(file, node, region):
            return True
        if ast.unparse(divided) in losses and _is_before(file, node, region, backwards):
            return True
    return False


def _is_of_another_training(file: FileModel, node: ast.AST, region: Region) -> bool:
    """Whether a node belongs to a loop or function with a backward of its own: what that divides says nothing of this one."""
    around = {region, *file.flow.ancestors(region)}
    for ancestor in file.flow.ancestors(node):
        if ancestor in around:
            return False
        if isinstance(ancestor, (*LOOPS, *FUNCTIONS)) and any(
            event.happening is Happening.BACKWARD for event in file.training.events(ancestor.body, depth=0)
        ):
            return True
    return False


def _division(node: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    """What is divided (or multiplied), and by what."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
        return node.left, node.right
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Div, ast.Mult)):
        return node.target, node.value
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"div", "div_", "mul_", "mul"}
        and node.args
    ):
        return node.func.value, node.args[-1]
    return None, None


def _last_name(node: ast.expr) -> str:
    """`k` of `k`, `args.k` and `float(k)`; the text of anything else."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _last_name(node.args[0])
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def _is_before(file: FileModel, node: ast.AST, region: Region, backwards: list[Event]) -> bool:
    inside = any(ancestor is region for ancestor in file.flow.ancestors(node))
    return inside and node.lineno <= backwards[-1].node.lineno  # type: ignore[attr-defined]  # what divides has a place
