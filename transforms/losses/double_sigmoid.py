"""Rule `double-sigmoid`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchfix_codemods.effects import replaces
from torchfix_codemods.rule import Category, Rule, Safety

from .activation import Activation, activated
from .last_step import comes_from_model
from .logits import logits_at_loss, pass_logits
from .loss_calls import BINARY_WITH_LOGITS, loss_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .activation import Activated
    from .loss_calls import LossCall


class DoubleSigmoid(Rule):
    """Binary cross entropy with logits that is given probabilities: the sigmoid is applied twice.

    ## Why
    `binary_cross_entropy_with_logits` and `BCEWithLogitsLoss` apply the sigmoid themselves. After one of your own,
    perfect predictions still cost 0.31 for positives and 0.69 for negatives, and the gradients push nowhere near zero.

    ## Example
    ```python
    from torch import nn

    criterion = nn.BCEWithLogitsLoss()


    def loss_of(model, x, target):
        return criterion(model(x).sigmoid(), target)
    ```
    ```python
    from torch import nn

    criterion = nn.BCEWithLogitsLoss()


    def loss_of(model, x, target):
        return criterion(model(x), target)
    ```

    ## Safety
    Unsafe: loss and gradients change, which is the point. Only reported where the sigmoid is the last step of the
    model: whoever predicts with it needs the probabilities. A sigmoid of the target is left alone.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    name = "double-sigmoid"
    category = Category.LOSSES
    safety = Safety.UNSAFE
    effects = (replaces("Sigmoid", "BCELoss", "BCEWithLogitsLoss"),)
    needles = (b"torch", b"ogits")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the losses with logits whose input is the result of a sigmoid."""
        for loss in loss_calls(file, BINARY_WITH_LOGITS):
            found = activated(file, loss.prediction, Activation.SIGMOID)
            if found:
                yield self._finding(file, loss, found)
            elif comes_from_model(file, loss.prediction, Activation.SIGMOID):
                function = file.source.code(loss.call.func)
                message = (
                    f"`{function}` applies the sigmoid itself, but the model ends with one: return logits, apply sigmoid where you predict"
                )
                yield self.finding(file, loss.call, message)

    def _finding(self, file: FileModel, loss: LossCall, found: Activated) -> Finding:
        function = file.source.code(loss.call.func)
        logits, edits = logits_at_loss(file, found), pass_logits(file, found)
        if logits is None or edits is None:
            return self.finding(file, loss.call, f"`{function}` applies the sigmoid itself: pass what the sigmoid was made of")
        message = f"pass the logits `{logits.code}`: `{function}` applies the sigmoid itself"
        return self.finding(file, loss.call, message, *edits)
