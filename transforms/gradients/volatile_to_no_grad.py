"""Rule `volatile-to-no-grad`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddDecorator, NeedImport, RemoveArgument, WrapInWith
from torchfix_codemods.effects import MAY_FREE_GRAPHS, RECORDS_NO_GRADIENTS, SAVES_LESS_FOR_BACKWARD, WARNS_LESS
from torchfix_codemods.model import Happening, Recording
from torchfix_codemods.rule import Category, Rule, Safety

from .regions import loop_without_gradients, statements_without_gradients
from .variables import is_constant, wrappings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .variables import Wrapping


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
    Unsafe: the results have no gradient history any more, which was the intent. Only where the function, a loop, or the
    statements up to the last use run a model and do nothing that needs gradients; safe where gradients are off already.
    A flag that is decided at run time, and `volatile` beside a backward, are reported. `volatile=False` says nothing, and
    is kept until the `Variable` goes.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    name = "volatile-to-no-grad"
    category = Category.GRADIENTS
    safety = Safety.SAFE
    effects = (
        RECORDS_NO_GRADIENTS,
        SAVES_LESS_FOR_BACKWARD,
        MAY_FREE_GRAPHS,
        WARNS_LESS,
    )
    needles = (b"torch",)
    pattern = re.compile(rb"volatile|Variable\s*\([^)]*,[^)]*,")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the uses of `volatile`; those that one guard serves together."""
        groups: dict[object, list[Wrapping]] = {}
        for wrapping in wrappings(file):
            if is_constant(wrapping.volatile, True):
                groups.setdefault(_place(file, wrapping.call), []).append(wrapping)
            elif wrapping.volatile is not None and not is_constant(wrapping.volatile, False):
                message = "`volatile` has no effect since torch 0.4: use `torch.set_grad_enabled(…)` where the model runs"
                yield self.finding(file, wrapping.call, message)
        for together in groups.values():
            yield from self._findings(file, together)
        for attribute in file.attributes("volatile"):
            if isinstance(attribute.ctx, ast.Store) and file.kinds.is_tensor(attribute.value):
                yield self.finding(file, attribute, "`volatile` has no effect since torch 0.4: run the model under `with torch.no_grad():`")

    def _findings(self, file: FileModel, together: list[Wrapping]) -> Iterator[Finding]:
        message, first = "`volatile=True` has no effect since torch 0.4", together[0].call
        dropped = [RemoveArgument(file.source.span(w.call), file.source.span(w.volatile)) for w in together if w.volatile is not None]
        if file.gradients.recording(first) is Recording.OFF:
            yield self.finding(file, first, f"{message}, and gradients are off here: leave it out", *dropped)
        elif guard := _guard(file, [wrapping.call for wrapping in together]):
            yield self.finding(file, first, f"{message}: run the model under torch.no_grad()", *dropped, *guard, safety=Safety.UNSAFE)
        else:
            for wrapping in together:
                yield self.finding(file, wrapping.call, f"{message}: put what needs no gradients here under `with torch.no_grad():`")


def _place(file: FileModel, call: ast.Call) -> object:
    """What a call is guarded with: its function, the largest loop that is free of gradients, or the block it stands in."""
    function = file.flow.function(call)
    if file.gradients.recording(call) is not Recording.ON:
        return call
    if isinstance(function, ast.FunctionDef) and _may_be_decorated(file, function):
        return function
    loop = loop_without_gradients(file, call)
    return loop or id(file.flow.place(file.flow.statement(call))[0])


def _may_be_decorated(file: FileModel, function: ast.FunctionDef) -> bool:
    suspended = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))
    runs = any(e.happening is Happening.FORWARD for e in file.training.events(function.body))
    return runs and not suspended and file.roles.may_run_without_gradients(function)


def _guard(file: FileModel, calls: list[ast.Call]) -> list[Edit]:
    """The edits that turn gradients off around the calls and all that uses their results; none where that isn't certain."""
    function, no_grad = file.flow.function(calls[0]), file.spelling("torch.no_grad", calls[0])
    if no_grad is None or isinstance(function, ast.Lambda) or file.gradients.recording(calls[0]) is not Recording.ON:
        return []
    needed: list[Edit] = [NeedImport("torch")] if file.lacks_torch(function or calls[0]) else []
    if isinstance(function, ast.FunctionDef) and _may_be_decorated(file, function):
        return [AddDecorator(file.source.span(function), f"{no_grad}()"), *needed]
    region = loop_without_gradients(file, calls[0]) or statements_without_gradients(file, calls)
    if region is None:
        return []
    return [WrapInWith(file.source.span(region.first), file.source.span(region.last), f"{no_grad}()"), *needed]
