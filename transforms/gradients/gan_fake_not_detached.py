"""Rule `gan-fake-not-detached`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind, Recording
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.identity import Identity
    from torchfix_codemods.rule import Finding


class GanFakeNotDetached(Rule):
    """Step of a discriminator that back-propagates into the generator.

    ## Why
    The discriminator's step needs no gradients of the generator. Without `detach()` they are computed all the same,
    stay in its parameters until somebody clears them, and the graph of the fake can't be used again without
    `retain_graph=True`.

    ## Example
    ```python
    import torch
    from torch import nn

    G, D = nn.Linear(2, 2), nn.Linear(2, 1)
    step_D = torch.optim.SGD(D.parameters(), lr=0.1)

    for z in torch.randn(3, 4, 2):
        fake = G(z)
        step_D.zero_grad()
        D(fake).mean().backward()
        step_D.step()
    ```
    ```python
    import torch
    from torch import nn

    G, D = nn.Linear(2, 2), nn.Linear(2, 1)
    step_D = torch.optim.SGD(D.parameters(), lr=0.1)

    for z in torch.randn(3, 4, 2):
        fake = G(z)
        step_D.zero_grad()
        D(fake.detach()).mean().backward()
        step_D.step()
    ```

    ## Safety
    Only reported: whether the weights stay the same depends on when the generator's gradients are cleared. The
    generator's own step, joint training and gradient penalties are left alone.

    ## References
    https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html
    """

    name = "gan-fake-not-detached"
    category = Category.GRADIENTS
    safety = Safety.REPORT
    needles = (b"torch", b"backward", b"step")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the forwards of a discriminator on what another module has made, before a step of its own alone."""
        for call in file.index.all(ast.Call):
            if len(call.args) >= 1 and isinstance(call.args[0], ast.Name) and isinstance(call.func, (ast.Name, ast.Attribute)):
                maker = _maker(file, call.args[0]) if _is_module(file, call.func) else None
                if maker is not None and self._is_own_step(file, call, maker):
                    fake, judge = call.args[0].id, file.source.code(call.func)
                    message = f"the step of `{judge}` computes gradients of `{file.source.code(maker)}` too: pass `{fake}.detach()`"
                    yield self.finding(file, call, message)

    def _is_own_step(self, file: FileModel, call: ast.Call, maker: ast.expr) -> bool:
        judge, generator = file.identities.of(call.func), file.identities.of(maker)
        if judge is None or generator is None or judge == generator:
            return False
        following = _after(file, call)
        step = next((i for i, e in enumerate(following) if e.happening is Happening.STEP), None)
        if step is None or not any(e.happening is Happening.BACKWARD for e in following[:step]):
            return False
        return _steps_only(file, following[step], judge)


def _is_module(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node) if not file.qualified(node) else None
    return fact is not None and fact.proven and fact.kind is Kind.MODULE and not str(fact.origin).endswith("Loss")


def _maker(file: FileModel, name: ast.Name) -> ast.expr | None:
    """The proven module whose recorded output a name is."""
    bindings = file.flow.reaching(name)
    if len(bindings) != 1:
        return None
    form, value, path = file.flow.definition(bindings[0])
    if form is not Form.ASSIGNED or path or not isinstance(value, ast.Call) or not _is_module(file, value.func):
        return None
    return value.func if file.gradients.recording(value) is Recording.ON else None


def _after(file: FileModel, call: ast.Call) -> list[Event]:
    """What happens after a call in its function (or script), in order."""
    function = file.flow.function(call)
    body = function.body if isinstance(function, FUNCTIONS) else file.tree.body
    return [
        e
        for e in file.training.events(body, depth=0)
        if (e.node.lineno, e.node.col_offset) > (call.lineno, call.col_offset) or _holds(e, call)
    ]


def _holds(event: Event, call: ast.Call) -> bool:
    """`D(fake).mean().backward()`: the backward begins where the forward does."""
    return event.node is not call and any(node is call for node in ast.walk(event.node))


def _steps_only(file: FileModel, step: Event, judge: Identity) -> bool:
    return step.subject is not None and file.optimized(step.subject) == judge
