"""Rule `zero-grad-wipes-gradients`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import MoveBefore
from torchfix_codemods.effects import STEPS_HAVE_GRADIENTS
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.rule import Finding

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Pass)


class ZeroGradWipesGradients(Rule):
    """`zero_grad` between `backward` and `step`: the optimizer sees no gradient.

    ## Why
    `zero_grad` clears what `backward` has just computed, so `step` moves nothing. It belongs before the backward.

    ## Example
    ```python
    import torch


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batches):
        for x in batches:
            loss = model(x).sum()
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
    ```
    ```python
    import torch


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batches):
        for x in batches:
            loss = model(x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Safety
    Unsafe: the parameters start to move, which is the intent. Kept where gradients are read or written in between,
    where another optimizer is cleared, and in branches. Only reported where it isn't proven that what is cleared is
    what is stepped.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "zero-grad-wipes-gradients"
    category = Category.GRADIENTS
    safety = Safety.UNSAFE
    effects = (STEPS_HAVE_GRADIENTS,)
    needles = (b"torch", b"backward", b"zero_grad", b"step")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `zero_grad` calls that stand between the backward and the step of the same parameters."""
        for call in file.methods("zero_grad"):
            statement = file.parent(call)
            if not isinstance(statement, ast.Expr) or file.roles.is_framework_code(file.flow.function(call) or file.tree):
                continue
            block, index = file.flow.place(statement)
            backward = _backward_before(file, block, index)
            step = _step_after(file, block, index)
            if backward is None or step is None:
                continue
            same = _clears_what_steps(file, call, step)
            if same:
                move = MoveBefore(file.source.span(statement), file.source.span(backward))
                yield self.finding(file, statement, "zero_grad wipes the gradients that backward just computed; call it before", move)
            elif same is None:
                yield self.finding(
                    file, statement, "zero_grad between backward and step: if it clears the stepped parameters, move it before backward"
                )


def _backward_before(file: FileModel, block: list[ast.stmt], index: int) -> ast.stmt | None:
    """The first statement of the backward whose gradients are cleared; None when something else needs them."""
    found: ast.stmt | None = None
    for statement in reversed(block[:index]):
        happenings = _happenings(file, statement)
        if Happening.BACKWARD in happenings:
            if not isinstance(statement, (*_SIMPLE, ast.With)):
                return None
            found = statement
        elif (
            not isinstance(statement, _SIMPLE)
            or _touches_gradient(statement)
            or _may_use_gradients(file, statement)
            or happenings & {Happening.STEP, Happening.CLEAR}
        ):
            break
    if found is None or _touched_between(block, found, index):
        return None
    return _first_of_line(file, block, found)


def _first_of_line(file: FileModel, block: list[ast.stmt], backward: ast.stmt) -> ast.stmt | None:
    """The statement that begins the line of the backward, as in `loss = f(x); loss.backward()`; None when it needs gradients."""
    place = next(i for i, s in enumerate(block) if s is backward)
    while place and block[place - 1].end_lineno == block[place].lineno:
        place -= 1
        happenings = _happenings(file, block[place])
        if happenings & {Happening.STEP, Happening.CLEAR, Happening.BACKWARD} or _touches_gradient(block[place]):
            return None
    return block[place]


def _touched_between(block: list[ast.stmt], first: ast.stmt, index: int) -> bool:
    start = next(i for i, s in enumerate(block) if s is first)
    between = block[start + 1 : index]
    return any(_touches_gradient(s) or not isinstance(s, (*_SIMPLE, ast.With)) for s in between)


def _may_use_gradients(file: FileModel, statement: ast.stmt) -> bool:
    """Whether a call in a statement may read or set gradients: it gets the model or the optimizer, and isn't known for harmless."""
    for node in own_nodes(statement):
        if not isinstance(node, ast.Call) or file.training.at(node):
            continue
        functions = file.functions.targets(node)
        if any(isinstance(inner, ast.Attribute) and inner.attr == "grad" for function in functions for inner in ast.walk(function)):
            return True
        unknown = not functions and not (file.qualified(node.func) or "").startswith(("torch.", "builtins."))
        facts = [file.fact(argument) for argument in node.args] if unknown else []
        if any(fact is not None and fact.kind in {Kind.MODULE, Kind.OPTIMIZER} for fact in facts):
            return True
    return False


def _step_after(file: FileModel, block: list[ast.stmt], index: int) -> Event | None:
    """The step that follows in the same straight line; None when gradients are computed or set in between."""
    for statement in block[index + 1 :]:
        if not isinstance(statement, _SIMPLE) or _touches_gradient(statement) or _may_use_gradients(file, statement):
            return None
        events = list(file.training.events([statement]))
        if any(e.happening is Happening.BACKWARD for e in events):
            return None
        step = next((e for e in events if e.happening is Happening.STEP and e.is_here), None)
        if step is not None:
            return None if _has_closure(step) else step
    return None


def _has_closure(step: Event) -> bool:
    """A step with a closure computes its gradients anew."""
    call = step.node
    return isinstance(call, ast.Call) and bool(call.args) and call.args[0] is not step.subject


def _happenings(file: FileModel, statement: ast.stmt) -> set[Happening]:
    return {event.happening for event in file.training.events([statement])}


def _touches_gradient(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in {"grad", "_grad", "main_grad"} for node in own_nodes(statement))


def _clears_what_steps(file: FileModel, call: ast.Call, step: Event) -> bool | None:
    """Whether `zero_grad` and `step` are of the same parameters; None when it can't be told."""
    assert isinstance(call.func, ast.Attribute)
    cleared, stepped = call.func.value, step.subject
    if stepped is None:
        return None
    first, second = file.identities.of(cleared), step.identity
    if first is not None and first == second:
        return True
    fact = file.fact(cleared)
    if file.training.is_optimizer(cleared):
        return False if first is not None and second is not None else None
    if fact is None or fact.kind is not Kind.MODULE:
        return None
    root = file.optimized(stepped)
    return None if root is None or first is None else root == first
