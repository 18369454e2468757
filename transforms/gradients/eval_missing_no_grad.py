"""Rule `eval-missing-no-grad`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddDecorator, NeedImport
from torchfix_codemods.effects import MAY_FREE_GRAPHS, RAISES_LESS, RECORDS_NO_GRADIENTS, SAVES_LESS_FOR_BACKWARD
from torchfix_codemods.model import Kind, Recording
from torchfix_codemods.model.roles import ENOUGH, EVALUATION_HINT
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function
    from torchfix_codemods.model.roles import Evaluation
    from torchfix_codemods.rule import Finding

_PLAIN = {Kind.NUMBER, Kind.TEXT, Kind.ARRAY, Kind.DEVICE}
_OPAQUE_DECORATORS = ("script", "contextmanager", "fixture", "jit", "compile", "trace")


class EvalMissingNoGrad(Rule):
    """Evaluation that records gradients which nobody uses.

    ## Why
    `eval()` does not stop autograd: every forward of the evaluation keeps its activations for a backward that never
    comes. Under `torch.no_grad()` the numbers are the same and nothing is kept.

    ## Example
    ```python
    import torch


    def evaluate(model: torch.nn.Module, loader):
        model.eval()
        correct = 0
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
        return correct
    ```
    ```python
    import torch


    @torch.no_grad()
    def evaluate(model: torch.nn.Module, loader):
        model.eval()
        correct = 0
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
        return correct
    ```

    ## Safety
    Safe when nothing with a gradient can leave the function; unsafe when a tensor may, since it then comes without
    history. Kept for anything that may need gradients (attacks, saliency, adaptation, a caller that differentiates the
    result), for coroutines, framework hooks and tests. Only reported for a model that isn't proven to be one, or when
    some forwards are guarded already.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    name = "eval-missing-no-grad"
    category = Category.GRADIENTS
    safety = Safety.SAFE
    effects = (
        RECORDS_NO_GRADIENTS,
        SAVES_LESS_FOR_BACKWARD,
        MAY_FREE_GRAPHS,
        RAISES_LESS,
    )
    needles = (b"torch", b"def ")
    pattern = EVALUATION_HINT

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield evaluation functions that run a model while gradients are recorded."""
        for function in file.index.all(ast.FunctionDef):
            evaluation = file.roles.evaluation(function)
            if evaluation is None or evaluation.score < ENOUGH or _is_out_of_reach(function):
                continue
            if any(_keeps_state(file, event.subject) for event in evaluation.forwards):
                continue
            modes = {file.gradients.recording(event.node, outside=True) for event in evaluation.forwards}
            if modes == {Recording.ON}:
                yield from self._unguarded(file, evaluation)
            elif Recording.ON in modes and Recording.OFF in modes:
                message = f"only some forwards of `{function.name}` run under no_grad; put all of them under it"
                yield self.finding(file, _first_on(file, evaluation), message)

    def _unguarded(self, file: FileModel, evaluation: Evaluation) -> Iterator[Finding]:
        function = evaluation.function
        forward = evaluation.forwards[0].node
        if not any(_is_proven(file, event.subject) for event in evaluation.forwards):
            if evaluation.names_itself:
                message = f"if `{function.name}` runs a torch module, decorate it with @torch.no_grad(): evaluation needs no gradients"
                yield self.finding(file, forward, message)
            return
        no_grad = file.spelling("torch.no_grad", function)
        if no_grad is None:
            return
        edits: list[Edit] = [
            AddDecorator(file.source.span(function), f"{no_grad}()"),
            *([NeedImport("torch")] if file.lacks_torch(function) else []),
        ]
        safety = Safety.SAFE if _nothing_leaves(file, function) else Safety.UNSAFE
        message = f"`{function.name}` records gradients that nobody uses: decorate it with @{no_grad}()"
        yield self.finding(file, forward, message, *edits, safety=safety)


def _is_out_of_reach(function: Function) -> bool:
    """Decorators that compile the function, or change when its body runs."""
    decorators = " ".join(ast.unparse(d) for d in function.decorator_list)
    return any(word in decorators for word in _OPAQUE_DECORATORS)


def _first_on(file: FileModel, evaluation: Evaluation) -> ast.Call | ast.stmt:
    return next(e.node for e in evaluation.forwards if file.gradients.recording(e.node) is Recording.ON)


def _is_proven(file: FileModel, model: ast.expr | None) -> bool:
    fact = file.fact(model) if model is not None else None
    return fact is not None and fact.proven


def _keeps_state(file: FileModel, model: ast.expr | None) -> bool:
    """A forward that stores a tensor on its module would store it without history, and training may go on with it."""
    fact = file.fact(model) if model is not None else None
    return fact is not None and file.classes.keeps_state(fact.origin, "forward")


def _nothing_leaves(file: FileModel, function: Function) -> bool:
    """Whether no tensor that could have history is returned, yielded, or stored where it outlives the call."""
    nodes = [node for statement in function.body for node in own_nodes(statement)]
    yielded = [node.value for node in nodes if isinstance(node, ast.Yield)]
    if any(isinstance(node, ast.YieldFrom) for node in nodes):
        return False
    values = [*file.functions.returns(function), *yielded]
    return all(value is None or _is_harmless(file, value) for value in values) and not any(_stores(file, function, n) for n in nodes)


def _is_harmless(file: FileModel, value: ast.expr) -> bool:
    if isinstance(value, (ast.Tuple, ast.List)):
        return all(_is_harmless(file, element) for element in value.elts)
    if isinstance(value, ast.Dict):
        return all(_is_harmless(file, element) for element in value.values)
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.BinOp):
        return _is_harmless(file, value.left) and _is_harmless(file, value.right)
    fact = file.fact(value)
    if fact is not None and fact.proven and fact.kind in _PLAIN:
        return True
    holds_tensors = fact is not None and (fact.is_tensor or fact.kind is Kind.SEQUENCE)
    return holds_tensors and file.gradients.tracked(value) is False


def _stores(file: FileModel, function: Function, node: ast.AST) -> bool:
    """Whether a node puts something other than a plain value into an object, a global or an argument."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(_is_outside(file, function, t) for t in targets) and not _is_harmless(file, node.value)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"append", "extend", "update", "add", "put"}
    ):
        return _is_outside(file, function, node.func.value) and not all(_is_harmless(file, a) for a in node.args)
    return isinstance(node, (ast.Global, ast.Nonlocal))


def _is_outside(file: FileModel, function: Function, target: ast.expr) -> bool:
    """Whether a target lives longer than the call: an attribute, or a container that came from outside."""
    through = isinstance(target, (ast.Attribute, ast.Subscript))
    while isinstance(target, (ast.Attribute, ast.Subscript, ast.Starred)):
        target = target.value
    if not isinstance(target, ast.Name):
        return through
    scope = file.names.scope_of(target)
    local = scope is not None and scope.node is function
    is_parameter = local and scope is not None and any(isinstance(b, ast.arg) for b in scope.bindings[target.id])
    return (is_parameter and through) or not local or (is_parameter and not isinstance(target.ctx, ast.Store))
