"""Rule `cross-entropy-on-softmax`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchfix_codemods.effects import replaces
from torchfix_codemods.rule import Category, Rule, Safety

from .activation import Activation, activated, literal_integer
from .last_step import comes_from_model
from .logits import logits_at_loss, pass_logits
from .loss_calls import CROSS_ENTROPY, loss_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .activation import Activated
    from .loss_calls import LossCall


class CrossEntropyOnSoftmax(Rule):
    """Cross entropy of probabilities: the softmax is applied twice.

    ## Why
    `cross_entropy` and `CrossEntropyLoss` expect logits and apply `log_softmax` themselves. After a softmax of one's
    own the loss can't come near zero (1.46 for ten classes and perfect predictions), and gradients are a fraction of
    what they should be: training is slow, and gets stuck.

    ## Example
    ```python
    import torch.nn.functional as F


    def loss_and_accuracy(model, x, y):
        out = model(x)
        probs = F.softmax(out, dim=1)
        loss = F.cross_entropy(probs, y)
        return loss, (probs.argmax(1) == y).float().mean()
    ```
    ```python
    import torch.nn.functional as F


    def loss_and_accuracy(model, x, y):
        out = model(x)
        probs = F.softmax(out, dim=1)
        loss = F.cross_entropy(out, y)
        return loss, (probs.argmax(1) == y).float().mean()
    ```

    ## Safety
    Unsafe: loss and gradients change, which is the point. Only reported where the softmax is the last step of the
    model (whoever predicts with it needs the probabilities), and where it isn't over the classes. A softmax of the
    target is right, and a `log_softmax` before the loss does no harm: both are left alone.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    name = "cross-entropy-on-softmax"
    category = Category.LOSSES
    safety = Safety.UNSAFE
    effects = (replaces("Softmax", "LogSoftmax", "Softmin", "Softmax2d"),)
    needles = (b"torch", b"oftmax")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the cross entropies whose input is the result of a softmax."""
        for loss in loss_calls(file, CROSS_ENTROPY):
            found = activated(file, loss.prediction, Activation.SOFTMAX)
            if found:
                yield self._finding(file, loss, found)
            elif comes_from_model(file, loss.prediction, Activation.SOFTMAX):
                function = file.source.code(loss.call.func)
                message = f"`{function}` expects logits, but the model ends with a softmax: return logits, apply softmax where you predict"
                yield self.finding(file, loss.call, message)

    def _finding(self, file: FileModel, loss: LossCall, found: Activated) -> Finding:
        function = file.source.code(loss.call.func)
        logits, edits = logits_at_loss(file, found), pass_logits(file, found)
        if logits is None or edits is None or not _is_over_classes(loss, found):
            message = f"`{function}` expects logits and applies log_softmax itself: pass what the softmax was made of"
            return self.finding(file, loss.call, message)
        message = f"pass the logits `{logits.code}`: `{function}` applies log_softmax itself"
        return self.finding(file, loss.call, message, *edits)


def _is_over_classes(loss: LossCall, found: Activated) -> bool:
    """Whether the softmax goes over the dimension of the classes, as far as the code shows, and keeps the type."""
    dimension = found.applied.option("dim", 0)
    is_reshaped = found.core is not loss.prediction or found.reshaping is not None
    usual = {-1} if is_reshaped else {1, -1}
    return (dimension is None or literal_integer(dimension) in usual) and found.applied.option("dtype", 1) is None
