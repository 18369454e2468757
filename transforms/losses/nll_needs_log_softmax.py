"""Rule `nll-needs-log-softmax`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.effects import replaces
from torchfix_codemods.rule import Category, Rule, Safety

from .activation import Activation, activated, applied_by, literal_integer
from .last_step import comes_from_model
from .logits import logits_at_loss
from .loss_calls import NLL, loss_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .activation import Activated, Applied


class NllNeedsLogSoftmax(Rule):
    """Negative log likelihood of plain probabilities, or the logarithm of a softmax.

    ## Why
    `nll_loss` expects log-probabilities: of probabilities it gives a loss between -1 and 0, whose gradients are
    wrong. And `log(softmax(x))` rounds small probabilities to zero first: at logits of 1000 and 0 it gives -inf and
    NaN gradients, where `log_softmax` gives -1000.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def loss_of(out, y):
        return F.nll_loss(F.softmax(out, dim=1), y)


    def entropy(out):
        p = F.softmax(out, dim=-1)
        return -(p * torch.log(F.softmax(out, dim=-1))).sum()
    ```
    ```python
    import torch
    import torch.nn.functional as F


    def loss_of(out, y):
        return F.nll_loss(F.log_softmax(out, dim=1), y)


    def entropy(out):
        p = F.softmax(out, dim=-1)
        return -(p * F.log_softmax(out, dim=-1)).sum()
    ```

    ## Safety
    Unsafe: the loss changes, which is the point; the logarithm only where it was rounded. Only reported where the
    softmax is the last step of the model. Logarithms of sums, means, clamped or smoothed probabilities are left alone.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    """

    name = "nll-needs-log-softmax"
    category = Category.LOSSES
    safety = Safety.UNSAFE
    effects = (replaces("Softmax", "LogSoftmax", "NLLLoss", "CrossEntropyLoss"),)
    needles = (b"torch", b"oftmax")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield likelihoods of a softmax, then logarithms of one."""
        for loss in loss_calls(file, NLL):
            found = activated(file, loss.prediction, Activation.SOFTMAX)
            function = file.source.code(loss.call.func)
            if found:
                edits = _in_loss(file, found)
                yield self.finding(file, loss.call, f"`{function}` expects log-probabilities: give it a log_softmax", *edits)
            elif comes_from_model(file, loss.prediction, Activation.SOFTMAX):
                message = f"`{function}` expects log-probabilities, but the model ends with a softmax: let it return log_softmax"
                yield self.finding(file, loss.call, message)
        for call in file.calls_named("log"):
            applied = _logged(file, call)
            if applied:
                message = "log(softmax) gives -inf and NaN gradients for small probabilities: use log_softmax"
                yield self.finding(file, call, message, *_as_log_softmax(file, applied, call, file.source.code(applied.logits)))


def _in_loss(file: FileModel, found: Activated) -> tuple[Edit, ...]:
    """Change the softmax where it is computed, if the loss alone reads it; else compute the logarithm in the loss."""
    applied = found.applied
    if found.binding is None or _is_read_once(file, found):
        return _as_log_softmax(file, applied, applied.call, file.source.code(applied.logits))
    logits = logits_at_loss(file, found) if found.reshaping is None else None
    edits = _as_log_softmax(file, applied, found.core, logits.code) if logits else ()
    return (*logits.edits, *edits) if logits and edits else ()


def _is_read_once(file: FileModel, found: Activated) -> bool:
    binding = found.binding
    assert binding is not None
    reads = [name for name in file.kinds.reads(binding.id) if binding in file.flow.reaching(name)]
    return reads == [found.core]


def _logged(file: FileModel, call: ast.Call) -> Applied | None:
    """The softmax that a call takes the logarithm of."""
    if file.qualified(call.func) == "torch.log":
        return applied_by(file, call.args[0], Activation.SOFTMAX) if len(call.args) == 1 and not call.keywords else None
    is_method = isinstance(call.func, ast.Attribute) and file.qualified(call.func) is None and not call.args and not call.keywords
    return applied_by(file, call.func.value, Activation.SOFTMAX) if is_method else None  # type: ignore[attr-defined]  # just tested


def _as_log_softmax(file: FileModel, applied: Applied, target: ast.expr, logits: str) -> tuple[Edit, ...]:
    """Put a log_softmax, written as the softmax was, where `target` stands."""
    function, options = _function(file, applied), _options(file, applied)
    if function is None or options is None:
        return ()
    if function:
        code = f"{function}({logits}{', ' if options else ''}{options})"
    else:
        code = f"{logits if _is_primary(applied.logits, logits) else f'({logits})'}.log_softmax({options})"
    needed = (NeedImport("torch"),) if file.spelling("torch.log_softmax", target) == function and file.lacks_torch(target) else ()
    return (ReplaceExpression(file.source.span(target), code), *needed)


def _is_primary(node: ast.expr, code: str) -> bool:
    """Whether a method can be called on the text as it is."""
    return code.isidentifier() or isinstance(node, (ast.Attribute, ast.Call, ast.Subscript))


def _function(file: FileModel, applied: Applied) -> str | None:
    """The function to call; empty for the method."""
    func = applied.call.func
    if applied.logits is getattr(func, "value", None):
        return ""
    is_function = applied.options is applied.call
    if is_function and isinstance(func, ast.Attribute):
        return f"{file.source.code(func.value)}.log_softmax"
    return file.spelling("torch.log_softmax", applied.call)


def _options(file: FileModel, applied: Applied) -> str | None:
    """The options as text; None where a layer's can't be repeated here."""
    options, code = applied.options, file.source.code
    if options is applied.call:
        named = [f"{k.arg}={code(k.value)}" if k.arg else f"**{code(k.value)}" for k in options.keywords if k.arg != "input"]
        return ", ".join([*(code(argument) for argument in options.args[applied.first_option :]), *named])
    dimension = literal_integer(applied.option("dim", 0))
    return None if dimension is None else f"dim={dimension}"
