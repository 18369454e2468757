"""Rule `loss-graph-accumulation`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail
from torchfix_codemods.effects import FREES_GRAPHS, RAISES_LESS
from torchfix_codemods.model import Happening, Kind, Recording
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding

_KEEPS_GRAPH = frozenset({"retain_graph", "create_graph", "retain_variables"})


class LossGraphAccumulation(Rule):
    """A total or a list that keeps the graph of every loss alive.

    ## Why
    `total += loss` links the graph of each step to the next: memory grows with every batch, all activations included
    where no backward freed them.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer, loader):
        total = 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss
        return total / len(loader)
    ```
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer, loader):
        total = 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total / len(loader)
    ```

    ## Safety
    Safe after a backward of the same loss without `retain_graph`: its graph is spent. Unsafe elsewhere. `detach()`,
    not `item()`: the type stays, and no step waits for the GPU. Kept where the total may be differentiated, where
    gradients are off, and for values that aren't proven to be losses with a graph.

    ## References
    https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    name = "loss-graph-accumulation"
    category = Category.MEMORY
    safety = Safety.SAFE
    effects = (
        FREES_GRAPHS,
        RAISES_LESS,
    )
    needles = (b"torch", b"backward")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield places that gather losses with their graphs."""
        for statement, target, loss in _gatherings(file):
            if not _may_be_loss(file, loss):
                continue
            backward = _backward_of(file, loss, statement)
            if not _has_graph(file, loss, backward) or file.gradients.recording(statement) is not Recording.ON:
                continue
            if not _outlives_the_step(file, statement, target) or file.backflow.of_name(target):
                continue
            if backward is None and _is_evaluation(file, statement):
                continue
            spent = backward is not None and backward.node.lineno < statement.lineno and _frees_graph(backward)
            span = file.source.span(loss)
            message = f"`{file.source.code(loss)}` keeps its graph alive in `{file.source.code(target)}`; gather the detached value"
            edit = ChangeTail(span, span, ("detach",))
            yield self.finding(file, loss, message, edit, safety=Safety.SAFE if spent else Safety.UNSAFE)


def _gatherings(file: FileModel) -> Iterator[tuple[ast.stmt, ast.expr, ast.expr]]:
    """Statement, what gathers, and the loss as written."""
    for augmented in file.index.all(ast.AugAssign):
        if isinstance(augmented.op, ast.Add):
            listed = isinstance(augmented.value, ast.List) and len(augmented.value.elts) == 1
            value = augmented.value.elts[0] if listed else augmented.value  # type: ignore[attr-defined]  # `listed` says so
            if loss := _loss_in(value):
                yield augmented, augmented.target, loss
    for assign in file.index.all(ast.Assign):
        value, target = assign.value, assign.targets[0]
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and len(assign.targets) == 1:
            for total, added in ((value.left, value.right), (value.right, value.left)):
                if ast.unparse(total) == ast.unparse(target) and (loss := _loss_in(added)):
                    yield assign, target, loss
    for call in file.methods("append"):
        statement = file.parent(call)
        if (
            isinstance(statement, ast.Expr)
            and len(call.args) == 1
            and isinstance(call.func, ast.Attribute)
            and (loss := _loss_in(call.args[0]))
        ):
            yield statement, call.func.value, loss


def _loss_in(value: ast.expr) -> ast.expr | None:
    """The variable in `loss`, `loss * n`, `n * loss` and `loss / n`."""
    if isinstance(value, (ast.Name, ast.Attribute)):
        return value
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        if isinstance(value.left, ast.Name) and _is_count(value.right):
            return value.left
        if isinstance(value.op, ast.Mult) and isinstance(value.right, ast.Name) and _is_count(value.left):
            return value.right
    return None


def _may_be_loss(file: FileModel, loss: ast.expr) -> bool:
    """A first look: a value that is known for something else is none."""
    fact = file.fact(loss)
    return fact is None or fact.is_tensor or fact.kind is Kind.UNDECIDED


def _is_count(node: ast.expr) -> bool:
    """A number, a length or a size: nothing that could carry a gradient."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith(("len", ".size", ".numel", "float", "int"))
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value).endswith(".shape")
    named = ast.unparse(node).lower() if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return isinstance(node, ast.Constant) or named.endswith(("size", "steps", "count", "bs", "num", "batches", "n"))


def _backward_of(file: FileModel, loss: ast.expr, statement: ast.stmt) -> Event | None:
    """The backward of the same variable in the same iteration."""
    text, loops = ast.unparse(loss), file.flow.loops(statement)
    region = loops[0].body if loops else _body_around(file, statement)
    for event in file.training.events(region, depth=0):
        if event.happening is Happening.BACKWARD and event.subject is not None and ast.unparse(event.subject) == text:
            if file.flow.loops(event.node)[:1] == loops[:1]:
                return event
    return None


def _body_around(file: FileModel, statement: ast.stmt) -> list[ast.stmt]:
    function = file.flow.function(statement)
    return function.body if isinstance(function, FUNCTIONS) else file.tree.body


def _has_graph(file: FileModel, loss: ast.expr, backward: Event | None) -> bool:
    """The value is proven a 0-dim tensor with history where it is gathered."""
    fact = file.fact(loss)
    if fact is not None and (not fact.is_tensor or fact.kind is Kind.PARAMETER):
        return False
    if backward is not None and isinstance(loss, ast.Name):
        return _same_value(file, loss, backward)
    return fact is not None and fact.proven and fact.kind is Kind.SCALAR_TENSOR and file.gradients.tracked(loss) is True


def _same_value(file: FileModel, loss: ast.Name, backward: Event) -> bool:
    """Whether the variable still holds what was (or will be) differentiated."""
    subject = backward.subject
    if not isinstance(subject, ast.Name):
        return False
    first, second = file.flow.reaching(loss), file.flow.reaching(subject)
    return bool(first) and set(first) == set(second)


def _frees_graph(backward: Event) -> bool:
    call = backward.origin
    return (
        isinstance(call, ast.Call) and not any(k.arg in _KEEPS_GRAPH or k.arg is None for k in call.keywords) and len(call.args) < 2
    )  # gradient, retain_graph


def _outlives_the_step(file: FileModel, statement: ast.stmt, target: ast.expr) -> bool:
    """Whether what gathers lives longer than one iteration: set up before the loop, or held by an object."""
    base = target
    while isinstance(base, ast.Subscript):
        base = base.value
    if isinstance(base, ast.Attribute):
        return True
    loops = file.flow.loops(statement)
    if not isinstance(base, ast.Name) or not loops:
        return False
    outermost = loops[-1]
    bindings = [b for b in file.names.bindings(base) if not isinstance(file.parent(b), ast.AugAssign)]
    others = [b for b in bindings if file.flow.statement(b) is not statement]
    innermost = loops[0]
    return (bool(others) and not any(_is_inside(file, b, innermost) for b in others)) or (not others and outermost is not innermost)


def _is_inside(file: FileModel, node: ast.AST, loop: Loop) -> bool:
    return any(ancestor is loop for ancestor in file.flow.ancestors(node))


def _is_evaluation(file: FileModel, statement: ast.stmt) -> bool:
    """An evaluation without no_grad: `eval-missing-no-grad` is the right fix there."""
    function = file.flow.function(statement)
    if not isinstance(function, FUNCTIONS):
        return False
    evaluation = file.roles.evaluation(function)
    return evaluation is not None and (evaluation.names_itself or evaluation.switches_mode)
