"""Rule `bce-with-logits`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.effects import replaces
from torchfix_codemods.rule import Category, Rule, Safety

from .activation import Activation, activated
from .criterion import calls_of_criterion
from .last_step import comes_from_model
from .logits import pass_logits
from .loss_calls import BINARY, BINARY_WITH_LOGITS, LossCall, first_argument, loss_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_ADVICE = "sigmoid and log cancel out numerically only inside binary_cross_entropy_with_logits (BCEWithLogitsLoss)"


class BceWithLogits(Rule):
    """Binary cross entropy of a sigmoid instead of the loss with logits.

    ## Why
    A sigmoid saturates: at a logit of 20 for a negative example `binary_cross_entropy` gives 100 and a gradient of
    zero, so that the worst mistakes are never mended. The loss with logits gives 20 and a gradient of one. Under CUDA
    autocast the loss on probabilities raises.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def loss_and_accuracy(model, x, target):
        p = torch.sigmoid(model(x))
        loss = F.binary_cross_entropy(p, target)
        return loss, (p > 0.5).float().mean()
    ```
    ```python
    import torch
    import torch.nn.functional as F


    def loss_and_accuracy(model, x, target):
        p_logits = model(x)
        p = torch.sigmoid(p_logits)
        loss = F.binary_cross_entropy_with_logits(p_logits, target)
        return loss, (p > 0.5).float().mean()
    ```

    ## Safety
    Unsafe: equal to seven digits, but for saturated predictions, where loss and gradient change for the better. A
    criterion is changed together with all its calls; only reported where one of these has no sigmoid, or isn't shown,
    and where the sigmoid is the last step of the model.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    https://docs.pytorch.org/docs/stable/amp.html#prefer-binary-cross-entropy-with-logits-over-binary-cross-entropy
    """

    name = "bce-with-logits"
    category = Category.LOSSES
    safety = Safety.UNSAFE
    effects = (replaces("Sigmoid", "BCELoss", "BCEWithLogitsLoss"),)
    needles = (b"torch", b"igmoid")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the binary cross entropies of a sigmoid; a criterion is one finding with all its calls."""
        seen: set[ast.Call] = set()
        for loss in loss_calls(file, BINARY):
            if loss.constructor in seen or not _follows_sigmoid(file, loss):
                continue
            edits = _edits(file, loss)
            seen |= {loss.constructor} if loss.constructor else set()
            function = file.source.code(loss.call.func)
            if edits:
                message = f"give `{function}` the logits, and use the loss that applies the sigmoid itself: {_ADVICE}"
                yield self.finding(file, loss.call, message, *edits)
            else:
                message = f"let the model give logits to `{function}`, apply sigmoid only to predict: {_ADVICE}"
                yield self.finding(file, loss.call, message)


def _follows_sigmoid(file: FileModel, loss: LossCall) -> bool:
    found = activated(file, loss.prediction, Activation.SIGMOID)
    return found is not None or comes_from_model(file, loss.prediction, Activation.SIGMOID)


def _edits(file: FileModel, loss: LossCall) -> tuple[Edit, ...]:
    """The change of the loss and of what all its calls are given; empty when one of them can't be changed."""
    calls = [loss.call] if loss.constructor is None else calls_of_criterion(file, loss.call, loss.constructor)
    givers = [_given(file, call) for call in calls or ()]
    if not givers or not all(givers):
        return ()
    renamed = _renamed(file, (loss.constructor or loss.call).func)
    return tuple(dict.fromkeys([*renamed, *(edit for edits in givers for edit in edits or ())])) if renamed else ()


def _given(file: FileModel, call: ast.Call) -> tuple[Edit, ...] | None:
    prediction = first_argument(call, "input")
    found = activated(file, prediction, Activation.SIGMOID) if prediction is not None else None
    return pass_logits(file, found) if found else None


def _renamed(file: FileModel, func: ast.expr) -> tuple[Edit, ...]:
    """The other loss, written as this one is."""
    old = file.qualified(func)
    new = BINARY_WITH_LOGITS.function if old == BINARY.function else BINARY_WITH_LOGITS.layer
    if isinstance(func, ast.Attribute):
        text = f"{file.source.code(func.value)}.{new.rpartition('.')[2]}"
        return (ReplaceExpression(file.source.span(func), text),)
    spelling = file.spelling(new, func)
    if spelling is None:
        return ()
    needed = (NeedImport("torch"),) if file.lacks_torch(func) else ()
    return (ReplaceExpression(file.source.span(func), spelling), *needed)
