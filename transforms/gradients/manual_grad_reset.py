"""Rule `manual-grad-reset`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceStatement
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .resets import Reset, resets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class ManualGradReset(Rule):
    """Loop over parameters that does what `zero_grad` does.

    ## Why
    `zero_grad` says it in one line, and skips what has no gradient yet. Setting gradients to None (the default since
    torch 2.0) frees their memory during the next forward.

    ## Example
    ```python
    import torch


    def clear(model: torch.nn.Module):
        for p in model.parameters():
            p.grad = None
    ```
    ```python
    import torch


    def clear(model: torch.nn.Module):
        model.zero_grad(set_to_none=True)
    ```

    ## Safety
    Safe where the loop is guarded or sets None: the same gradients. Unsafe for a loop that raises for parameters without
    a gradient, which `zero_grad` doesn't. Optional, since it is a matter of taste: select it by name.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.zero_grad
    """

    name = "manual-grad-reset"
    category = Category.GRADIENTS
    safety = Safety.SAFE
    effects = (RAISES_LESS,)
    optional = True
    needles = (b"torch", b".grad", b"parameters()")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the loops that reset all gradients of a module."""
        for reset in resets(file):
            yield self.finding(
                file, reset.loop, _message(reset), ReplaceStatement(file.source.span(reset.loop), reset.code), safety=_safety(reset)
            )


def _message(reset: Reset) -> str:
    return f"this loop is `{reset.code}`"


def _safety(reset: Reset) -> Safety:
    return Safety.SAFE if reset.is_guarded else Safety.UNSAFE
