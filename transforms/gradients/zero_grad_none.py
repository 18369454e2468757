"""Rule `zero-grad-none`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceStatement
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .gradient_reads import read_after
from .resets import resets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class ZeroGradNone(Rule):
    """Gradients that are read where there are none: after `zero_grad`, or before the first backward.

    ## Why
    Since torch 2.0 `zero_grad` sets gradients to None. Code from before that reads `p.grad.data` after it, or zeroes
    each gradient by hand, raises an AttributeError.

    ## Example
    ```python
    import torch


    def clear(model: torch.nn.Module):
        for p in model.parameters():
            p.grad.data.zero_()
    ```
    ```python
    import torch


    def clear(model: torch.nn.Module):
        model.zero_grad()
    ```

    ## Safety
    Unsafe: gradients become None where they were zero. Only for loops over all parameters of a module that do nothing
    else; a read of a gradient between `zero_grad` and the next backward is reported.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "zero-grad-none"
    category = Category.GRADIENTS
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b".grad")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield unguarded loops that zero gradients, and reads right after `zero_grad`."""
        for reset in resets(file):
            if not reset.is_guarded:
                message = f"raises for parameters without a gradient: `{reset.code}` does not"
                yield self.finding(file, reset.loop, message, ReplaceStatement(file.source.span(reset.loop), reset.code))
        for call in file.methods("zero_grad"):
            read = read_after(file, call) if _sets_none(call) else None
            if read is not None:
                message = f"`{file.source.code(read)}` is None here: zero_grad() removes gradients (since torch 2.0 by default)"
                yield self.finding(file, read, f"{message}; read it before, or use zero_grad(set_to_none=False)")


def _sets_none(call: ast.Call) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(isinstance(value, ast.Constant) and value.value is True for value in values)
