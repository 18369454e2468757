"""Rule `accumulated-loss-not-scaled`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .accumulation import accumulations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .accumulation import Accumulation

_SCALED_ELSEWHERE = re.compile(
    r"\.grad(\.data)?\s*[/*]=|\.grad(\.data)?\.(div_|mul_)|\blr\b.*/|reduction\s*=\s*['\"]sum|size_average\s*=\s*False|scale_grad|no_sync"
)


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
    needles = (b"torch", b"backward", b"step", b"%")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the backwards of mean losses in loops that step by a counter."""
        for found in accumulations(file):
            loss = found.backward.subject
            fact = file.fact(loss) if loss is not None else None
            clears = [e for e in found.events if e.happening is Happening.CLEAR and e.node.lineno < found.backward.node.lineno]
            if fact is None or fact.kind is not Kind.SCALAR_TENSOR or clears or _is_scaled(file, found):
                continue
            divisor = _counter(found)
            advice = f"divide it by `{divisor}`, use reduction='sum' over the number of samples, or say that the rate is tuned to the sum"
            yield self.finding(file, found.backward.node, f"mean losses of several batches add up to one step: {advice}")


def _is_scaled(file: FileModel, found: Accumulation) -> bool:
    """Whether anything in the loop divides, or the file scales gradients, rates or losses in another way."""
    divides = any(isinstance(n, (ast.BinOp, ast.AugAssign)) and isinstance(n.op, (ast.Div, ast.FloorDiv)) for n in ast.walk(found.loop))
    multiplied = any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) for s in found.loop.body for n in ast.walk(s) if _is_before(n, found)
    )
    return divides or multiplied or _SCALED_ELSEWHERE.search(file.source.code(found.loop)) is not None


def _is_before(node: ast.AST, found: Accumulation) -> bool:
    return getattr(node, "lineno", 0) <= found.backward.node.lineno


def _counter(found: Accumulation) -> str:
    """The number that the counter is divided by."""
    remainders = [n for n in ast.walk(found.loop) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)]
    return ast.unparse(remainders[0].right) if remainders else "their number"
