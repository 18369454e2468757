"""Rule `volatile-to-no-grad`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddDecorator, NeedImport, RemoveArgument, WrapInWith
from torchfix_codemods.model import Happening, Recording
from torchfix_codemods.rule import Category, Rule, Safety

from .variables import is_constant, keyword, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_NEEDS_GRADIENTS = {Happening.BACKWARD, Happening.STEP}


class VolatileToNoGrad(Rule):
    """`volatile=True`, which has had no effect since torch 0.4.

    ## Why
    Once it kept autograd from recording; today it only warns, and the evaluation silently keeps every activation.

    ## Example
    ```python
    import torch
    from torch import nn
    from torch.autograd import Variable

    net = nn.Linear(2, 2)


    def predict(x):
        x = Variable(x, volatile=True)
        return net(x).max(1)[1]
    ```
    ```python
    import torch
    from torch import nn
    from torch.autograd import Variable

    net = nn.Linear(2, 2)


    @torch.no_grad()
    def predict(x):
        x = Variable(x)
        return net(x).max(1)[1]
    ```

    ## Safety
    Unsafe: the results have no gradient history any more, which was the intent. Only where the function (or the loop of a
    script) runs a model and does nothing that needs gradients; a flag that is decided at run time, and `volatile` beside
    a backward, are reported. `volatile=False` says nothing, and is kept until the `Variable` goes.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    name = "volatile-to-no-grad"
    category = Category.GRADIENTS
    safety = Safety.SAFE
    needles = (b"torch", b"volatile")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the uses of `volatile`; those of one function together."""
        volatile = [call for call in variables(file) if keyword(call, "volatile") is not None]
        done: set[ast.AST | None] = set()
        for call in volatile:
            value = keyword(call, "volatile")
            if is_constant(value, False):
                continue  # says nothing, and goes with the Variable
            if not is_constant(value, True):
                message = "`volatile` has no effect since torch 0.4: use `torch.set_grad_enabled(…)` where the model runs"
                yield self.finding(file, call, message)
            elif _region(file, call) not in done:
                done.add(_region(file, call))
                together = [c for c in volatile if is_constant(keyword(c, "volatile"), True) and _region(file, c) is _region(file, call)]
                yield self._finding(file, call, together)

    def _finding(self, file: FileModel, call: ast.Call, together: list[ast.Call]) -> Finding:
        message = "`volatile=True` has no effect since torch 0.4"
        dropped: list[Edit] = [_without(file, other) for other in together]
        guard = _guard(file, call)
        if guard:
            return self.finding(file, call, f"{message}: run the model under torch.no_grad()", *dropped, *guard, safety=Safety.UNSAFE)
        if file.gradients.recording(call) is Recording.OFF:
            return self.finding(file, call, f"{message}, and gradients are off here: leave it out", *dropped)
        return self.finding(file, call, f"{message}: put what needs no gradients here under `with torch.no_grad():`")


def _without(file: FileModel, call: ast.Call) -> Edit:
    value = keyword(call, "volatile")
    assert value is not None
    return RemoveArgument(file.source.span(call), file.source.span(value))


def _region(file: FileModel, call: ast.Call) -> ast.AST | None:
    """The function around a call; in a script, the outermost loop around it."""
    return file.flow.function(call) or next(iter(file.flow.loops(call)[-1:]), None)


def _guard(file: FileModel, call: ast.Call) -> list[Edit]:
    """The edits that turn gradients off around the call and all that uses its result; none where that isn't certain."""
    region = _region(file, call)
    no_grad = file.spelling("torch.no_grad", region or call)
    if region is None or no_grad is None or file.gradients.recording(call) is not Recording.ON:
        return []
    needed: list[Edit] = [NeedImport("torch")] if file.lacks_torch(region) else []
    if isinstance(region, ast.FunctionDef):
        suspended = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(region))
        runs = any(e.happening is Happening.FORWARD for e in file.training.events(region.body))
        if suspended or not runs or not file.roles.may_run_without_gradients(region):
            return []
        return [AddDecorator(file.source.span(region), f"{no_grad}()"), *needed]
    if not isinstance(region, (ast.For, ast.While)):
        return []
    happenings = {e.happening for e in file.training.events(region.body)}
    if happenings & _NEEDS_GRADIENTS or Happening.FORWARD not in happenings or any(map(file.roles.needs_gradient, ast.walk(region))):
        return []
    span = file.source.span(region)
    return [WrapInWith(span, span, f"{no_grad}()"), *needed]
