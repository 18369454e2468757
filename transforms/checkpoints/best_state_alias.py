"""Rule `best-state-alias`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_CHANGES = {Happening.STEP, Happening.BACKWARD}


class BestStateAlias(Rule):
    """State dict that is kept as the best one, while training goes on changing it.

    ## Why
    `state_dict()` gives references to the parameters, not copies: at the end the "best" state is the last one. A shallow
    copy (`dict(…)`, `.copy()`) shares the tensors all the same.

    ## Example
    ```python
    import torch


    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer, epochs, step, score):
        best, best_state = 0.0, None
        for _ in range(epochs):
            step(model).backward()
            optimizer.step()
            if score(model) > best:
                best_state = model.state_dict()
        model.load_state_dict(best_state)
    ```
    ```python
    import torch
    import copy


    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer, epochs, step, score):
        best, best_state = 0.0, None
        for _ in range(epochs):
            step(model).backward()
            optimizer.step()
            if score(model) > best:
                best_state = copy.deepcopy(model.state_dict())
        model.load_state_dict(best_state)
    ```

    ## Safety
    Unsafe: another state is restored, which is the intent, and the copy takes memory. Only where the state is used after
    the model may have changed; one that is saved or loaded at once is kept.

    ## References
    https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "best-state-alias"
    category = Category.CHECKPOINTS
    safety = Safety.UNSAFE
    needles = (b"torch", b"state_dict()")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield assignments of a live state dict that is used after more training."""
        for assignment in file.index.all(ast.Assign):
            target = assignment.targets[0]
            state = _state(file, assignment.value)
            if state is None or len(assignment.targets) != 1 or not isinstance(target, (ast.Name, ast.Attribute)):
                continue
            if _is_used_after_change(file, assignment, target, state):
                deepcopy, needed = _deepcopy(file)
                edit = ReplaceExpression(file.source.span(assignment.value), f"{deepcopy}({file.source.code(state)})")
                message = f"`{file.source.code(target)}` changes with the model: keep a deep copy"
                yield self.finding(file, assignment.value, message, edit, *needed)


def _state(file: FileModel, value: ast.expr) -> ast.Call | None:
    """The `state_dict()` call of a module, through `dict(…)`, `OrderedDict(…)` and `.copy()`."""
    if not isinstance(value, ast.Call):
        return None
    if file.qualified(value.func) in {"builtins.dict", "collections.OrderedDict"} and len(value.args) == 1:
        return _state(file, value.args[0])
    if isinstance(value.func, ast.Attribute) and value.func.attr == "copy" and not value.args and not file.qualified(value.func):
        return _state(file, value.func.value)
    if isinstance(value.func, ast.Attribute) and value.func.attr == "state_dict" and not value.args and not value.keywords:
        fact = file.fact(value.func.value)
        return value if fact is not None and fact.proven and fact.kind is Kind.MODULE else None
    return None


def _is_used_after_change(file: FileModel, assignment: ast.Assign, target: ast.expr, state: ast.Call) -> bool:
    function = file.flow.function(assignment)
    body = function.body if isinstance(function, FUNCTIONS) else file.tree.body
    text = ast.unparse(target)
    uses = [n for s in body for n in ast.walk(s) if isinstance(n, type(target)) and _is_read(n) and ast.unparse(n) == text]
    kept = [use for use in uses if _keeps(file, use)]
    loops = file.flow.loops(assignment)
    events = [e for e in file.training.events(body) if e.happening in _CHANGES]
    for use in kept:
        outside = [loop for loop in loops if loop not in file.flow.loops(use)]
        if any(any(node is e.node for node in ast.walk(loop)) for loop in outside for e in events):
            return True
        between = [e for e in events if assignment.lineno < e.node.lineno < use.lineno]
        if between or _is_written_between(file, assignment, use, state):
            return True
    return False


def _is_read(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _keeps(file: FileModel, use: ast.AST) -> bool:
    """Whether a use restores, returns or saves the state."""
    parent = file.parent(use)
    if isinstance(parent, (ast.Return, ast.Tuple)):
        return True
    if not isinstance(parent, ast.Call) or use not in parent.args:
        return False
    name = file.qualified(parent.func)
    return name == "torch.save" or (isinstance(parent.func, ast.Attribute) and parent.func.attr == "load_state_dict")


def _is_written_between(file: FileModel, assignment: ast.Assign, use: ast.AST, state: ast.Call) -> bool:
    """A write in place to a part of the model: `model.bias.add_(1)`."""
    model = ast.unparse(state.func.value)  # type: ignore[attr-defined]  # a method
    for call in file.index.all(ast.Call):
        if assignment.lineno < call.lineno < use.lineno and isinstance(call.func, ast.Attribute):  # type: ignore[attr-defined]  # an expression
            method = call.func.attr
            if method.endswith("_") and not method.endswith("__") and ast.unparse(call.func.value).startswith(f"{model}."):
                return True
    return False


def _deepcopy(file: FileModel) -> tuple[str, list[Edit]]:
    """How the file can name deepcopy, and the import that it needs for that."""
    for name, bindings in file.index.scopes[file.tree].bindings.items():
        targets = {file.names.import_target(binding) for binding in bindings}
        if targets == {"copy.deepcopy"}:
            return name, []
        if targets == {"copy"}:
            return f"{name}.deepcopy", []
    return "copy.deepcopy", [NeedImport("copy")]
