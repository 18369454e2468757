"""Rule `loss-reduction-kwargs`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, RemoveArgument
from torchfix_codemods.effects import WARNS_LESS
from torchfix_codemods.model.torch_api import LOSS_FUNCTIONS, LOSS_LAYERS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_FLAGS = ("size_average", "reduce")
_POSITIONS = {
    "MSELoss L1Loss SmoothL1Loss SoftMarginLoss KLDivLoss MultiLabelMarginLoss": "size_average reduce reduction",
    "CrossEntropyLoss NLLLoss": "weight size_average ignore_index reduce reduction label_smoothing",
    "BCELoss BCEWithLogitsLoss MultiLabelSoftMarginLoss": "weight size_average reduce reduction pos_weight",
    "HingeEmbeddingLoss CosineEmbeddingLoss MarginRankingLoss": "margin size_average reduce reduction",
    "MultiMarginLoss": "p margin weight size_average reduce reduction",
    "TripletMarginLoss": "margin p eps swap size_average reduce reduction",
    "PoissonNLLLoss": "log_input full size_average eps reduce reduction",
    "mse_loss l1_loss smooth_l1_loss soft_margin_loss kl_div multilabel_margin_loss": "input target size_average reduce reduction",
    "cross_entropy nll_loss": "input target weight size_average ignore_index reduce reduction",
    "binary_cross_entropy binary_cross_entropy_with_logits": "input target weight size_average reduce reduction",
}
"""Losses to the names of their positional parameters."""
_PARAMETERS = {name: parameters.split() for names, parameters in _POSITIONS.items() for name in names.split()}


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    value: ast.expr
    position: int | None = None


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
    effects = (WARNS_LESS,)
    needles = (b"torch",)
    pattern = re.compile(rb"size_average|reduce|Loss|_loss|cross_entropy|kl_div")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield losses with one of the old flags, by name or position."""
        for call in file.index.all(ast.Call):
            name = file.qualified(call.func) or ""
            if name in LOSS_LAYERS or name in LOSS_FUNCTIONS:
                options = _options(call, name.rpartition(".")[2])
                flags = [option for option in options if option.name in _FLAGS]
                if any(flag.position is None or not _is_none(flag.value) for flag in flags):
                    yield self._finding(file, call, options, flags, is_function=name in LOSS_FUNCTIONS)

    def _finding(self, file: FileModel, call: ast.Call, options: list[_Option], flags: list[_Option], *, is_function: bool) -> Finding:
        words = " and ".join(f"`{flag.name}`" for flag in flags)
        unknown = any(keyword.arg is None for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)
        if unknown or any(option.name == "reduction" for option in options):
            return self.finding(file, call, f"{words} and `reduction` in one call: the old flags win; say it with `reduction` alone")
        if not all(isinstance(flag.value, ast.Constant) and isinstance(flag.value.value, (int, type(None))) for flag in flags):
            return self.finding(file, call, f'{words} is deprecated: write `reduction="mean" if … else "sum"`')
        reduction = _reduction(flags)
        advice = f'write `reduction="{reduction}"`' if reduction != "mean" else "leave it out: the mean is the default"
        by_position = [flag.position for flag in flags if flag.position is not None]
        edits = () if is_function and by_position else _edits(file, call, options, flags, reduction)
        return self.finding(file, call, f"{words} is deprecated: {advice}", *edits)


def _options(call: ast.Call, loss: str) -> list[_Option]:
    parameters = _PARAMETERS.get(loss, [])
    given = [_Option(name, value, i) for i, (name, value) in enumerate(zip(parameters, call.args, strict=False))]
    return [*given, *(_Option(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _edits(file: FileModel, call: ast.Call, options: list[_Option], flags: list[_Option], reduction: str) -> tuple[Edit, ...]:
    """Take the flags away; what stood behind one by position gets its name, so that it stays what it is."""
    span = file.source.span
    first = min((flag.position for flag in flags if flag.position is not None), default=len(call.args))
    if len(call.args) > len([option for option in options if option.position is not None]):
        return ()
    named = [option for option in options if option.position is not None and option.position > first and option not in flags]
    edits: list[Edit] = [RemoveArgument(span(call), span(option.value)) for option in (*flags, *named)]
    edits += [AddKeyword(span(call), option.name, file.source.code(option.value)) for option in named]
    edits += [AddKeyword(span(call), "reduction", f'"{reduction}"')] if reduction != "mean" else []
    return tuple(edits)


def _reduction(flags: list[_Option]) -> str:
    """What the old flags mean together: `reduce=False` wins, and None is the default."""
    values = {flag.name: flag.value.value for flag in flags if isinstance(flag.value, ast.Constant) and flag.value.value is not None}
    if not values.get("reduce", True):
        return "none"
    return "mean" if values.get("size_average", True) else "sum"
