"""Rule `loss-reduction-kwargs`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, RemoveArgument
from torchfix_codemods.model.torch_api import LOSS_FUNCTIONS, LOSS_LAYERS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_WEIGHTED = frozenset(f"torch.nn.{name}" for name in ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss"))
_PLAIN = frozenset(f"torch.nn.{name}" for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "KLDivLoss", "SoftMarginLoss"))
_NAMES = ("size_average", "reduce")


@dataclass(frozen=True, slots=True)
class _Flag:
    name: str
    value: ast.expr


class LossReductionKwargs(Rule):
    """Loss with the old flags `size_average` and `reduce`.

    ## Why
    The flags are deprecated since torch 0.4.1 and warn on every use; `reduction` says the same in one word. By default
    a loss is the mean: whoever adds up gradients of batches may want the sum.

    ## Example
    ```python
    from torch import nn

    criterion = nn.MSELoss(size_average=False)
    ```
    ```python
    from torch import nn

    criterion = nn.MSELoss(reduction="sum")
    ```

    ## Safety
    Safe: the same value without the warning. Flags that aren't literal become reports, and so does a call that has
    `reduction` too (the old flags win then, with a warning).

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html
    """

    name = "loss-reduction-kwargs"
    category = Category.LOSSES
    safety = Safety.SAFE
    needles = (b"torch",)
    pattern = re.compile(rb"size_average|reduce|Loss\(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield losses with one of the old flags, by name or position."""
        for call in file.index.all(ast.Call):
            name = file.qualified(call.func) or ""
            if name in LOSS_LAYERS or name in LOSS_FUNCTIONS:
                flags = _flags(call, name)
                if flags:
                    yield self._finding(file, call, flags)

    def _finding(self, file: FileModel, call: ast.Call, flags: list[_Flag]) -> Finding:
        words = " and ".join(f"`{flag.name}`" for flag in flags)
        if any(keyword.arg in {"reduction", None} for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            return self.finding(file, call, f"{words} and `reduction` in one call: the old flags win; say it with `reduction` alone")
        if not all(isinstance(flag.value, ast.Constant) for flag in flags):
            return self.finding(file, call, f'{words} is deprecated: write `reduction="mean" if … else "sum"`')
        reduction = _reduction(flags)
        span = file.source.span(call)
        edits: list[Edit] = [RemoveArgument(span, file.source.span(flag.value)) for flag in flags]
        edits += [AddKeyword(span, "reduction", f'"{reduction}"')] if reduction != "mean" else []
        advice = f'write `reduction="{reduction}"`' if reduction != "mean" else "leave it out: the mean is the default"
        return self.finding(file, call, f"{words} is deprecated: {advice}", *edits)


def _flags(call: ast.Call, name: str) -> list[_Flag]:
    named = [_Flag(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg in _NAMES]
    first = 1 if name in _WEIGHTED else 0 if name in _PLAIN else len(call.args)
    places = {first: "size_average", first + (2 if (name in _WEIGHTED and "CrossEntropy" in name) or "NLL" in name else 1): "reduce"}
    given = [_Flag(places[i], value) for i, value in enumerate(call.args) if i in places and _is_flag(value)]
    return [*given, *named]


def _is_flag(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _reduction(flags: list[_Flag]) -> str:
    """What the old flags mean together: `reduce=False` wins."""
    values = {flag.name: flag.value.value for flag in flags if isinstance(flag.value, ast.Constant)}
    if values.get("reduce") is False:
        return "none"
    return "sum" if values.get("size_average") is False else "mean"
