"""Rule `gan-fake-not-detached`."""

from __future__ import annotations

import ast
import re
from itertools import takewhile
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

_CUTS = frozenset({"detach", "numpy", "item"})
_JUDGE_NAME = re.compile(r"(?i:disc|critic|(^|[_.])d(_|$))|D$")
_DEPTH = 6
"""How many assignments a loss is followed through."""


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
        training = {file.flow.function(call) for call in file.methods("backward")}
        for call in file.index.all(ast.Call):
            if (
                file.flow.function(call) not in training
                or not call.args
                or not isinstance(call.func, (ast.Name, ast.Attribute))
                or not _is_module(file, call.func)
            ):
                continue
            for fake in _attached(file, call):
                maker = _maker(file, fake)
                if maker is not None and _is_own_step(file, call, maker) and not _needs_graph(file, call, fake, maker):
                    judge, code = file.source.code(call.func), file.source.code(fake)
                    message = f"the step of `{judge}` computes gradients of `{file.source.code(maker)}` too: pass `{code}.detach()`"
                    yield self.finding(file, call, message)


def _is_module(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node) if not file.qualified(node) else None
    return fact is not None and fact.kind is Kind.MODULE and not str(fact.origin).endswith("Loss")


def _attached(file: FileModel, call: ast.Call) -> Iterator[ast.expr]:
    """What a call is given with its graph: names and inner calls of modules, also joined with others."""
    stack: list[ast.AST] = list(reversed(call.args))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CUTS
        ):
            continue
        if isinstance(node, ast.Name) or (isinstance(node, ast.Call) and _is_module(file, node.func)):
            yield node
        elif isinstance(node, ast.Call):
            stack += node.args
        elif isinstance(node, (ast.List, ast.Tuple)):
            stack += node.elts


def _maker(file: FileModel, fake: ast.expr) -> ast.expr | None:
    """The module whose recorded output a value is."""
    value: ast.expr | None = fake
    if isinstance(fake, ast.Name):
        bindings = file.flow.reaching(fake)
        form, value, path = file.flow.definition(bindings[0]) if len(bindings) == 1 else (Form.OTHER, None, ())
        if form is not Form.ASSIGNED or path:
            return None
    if not isinstance(value, ast.Call) or not _is_module(file, value.func):
        return None
    return value.func if file.gradients.recording(value) is Recording.ON else None


def _is_own_step(file: FileModel, call: ast.Call, maker: ast.expr) -> bool:
    """Whether a backward and a step of the called module alone follow, and its output serves no other backward."""
    judge, generator = file.identities.of(call.func), file.identities.of(maker)
    if judge is None or generator is None or judge == generator:
        return False
    following = _after(file, call)
    number = next((i for i, e in enumerate(following) if e.happening is Happening.STEP), None)
    if number is None:
        return False
    step, later = following[number], following[number + 1 :]
    learns = _is_differentiated(file, call, following[:number]) and _steps_only(file, step, judge)
    return learns and not _is_joint(step, later) and not _is_differentiated(file, call, later)


def _steps_only(file: FileModel, step: Event, judge: Identity) -> bool:
    """Whether an optimizer is that of the judge: by what it was made with, else by a name that says so."""
    if step.subject is None:
        return False
    fact = file.fact(step.subject)
    if fact is not None and fact.call is not None:
        return file.optimized(step.subject) == judge
    return bool(_JUDGE_NAME.search(ast.unparse(step.subject)))


def _is_joint(step: Event, later: list[Event]) -> bool:
    """Whether other parameters are stepped along the same gradients."""
    same_round = takewhile(lambda e: e.happening is not Happening.BACKWARD, later)
    return any(e.happening is Happening.STEP and e.identity != step.identity for e in same_round)


def _is_differentiated(file: FileModel, call: ast.Call, events: list[Event]) -> bool:
    """Whether a backward among some events goes through what a call gave."""
    losses = (event.subject for event in events if event.happening is Happening.BACKWARD)
    return any(loss is not None and _depends_on(file, loss, call) for loss in losses)


def _depends_on(file: FileModel, value: ast.expr, call: ast.Call, depth: int = _DEPTH) -> bool:
    """Whether a value is computed from a call, through the names that it is held by in between."""
    for node in ast.walk(value):
        if node is call:
            return True
        if isinstance(node, ast.Name) and depth:
            sources = (file.flow.definition(binding).value for binding in file.flow.reaching(node))
            if any(source is not None and _depends_on(file, source, call, depth - 1) for source in sources):
                return True
    return False


def _needs_graph(file: FileModel, call: ast.Call, fake: ast.expr, maker: ast.expr) -> bool:
    """Whether a penalty differentiates by the fake, or its maker is frozen: no gradients are computed in vain then."""
    function, text, owner = file.flow.function(call), ast.unparse(fake), ast.unparse(maker)
    for penalty in file.calls("torch.autograd.grad"):
        if file.flow.function(penalty) is function and any(ast.unparse(part) == text for a in penalty.args for part in ast.walk(a)):
            return True
    freezes = [*file.attributes("requires_grad"), *file.attributes("requires_grad_"), *file.calls_named("set_requires_grad")]
    return any(f"{owner}." in code or f"({owner}," in code for code in (_around(file, node) for node in freezes))


def _around(file: FileModel, node: ast.AST) -> str:
    loops = file.flow.loops(node)
    header = f"{ast.unparse(loops[0].iter)} " if loops and isinstance(loops[0], ast.For) else ""
    return header + ast.unparse(file.flow.statement(node))


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
