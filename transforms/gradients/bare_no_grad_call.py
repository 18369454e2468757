"""Rule `bare-no-grad-call`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddDecorator, DeleteStatement, NeedImport
from torchfix_codemods.model import Happening
from torchfix_codemods.model.torch_api import ENABLE_GRAD, NO_GRAD_CONTEXTS, SET_GRAD_ENABLED
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class BareNoGradCall(Rule):
    """`torch.no_grad()` as a statement, where it has no effect.

    ## Why
    `no_grad()` makes a context manager: unless it is entered by `with`, or decorates a function, gradients are recorded
    as before.

    ## Example
    ```python
    import torch


    def predict(model: torch.nn.Module, x):
        model.eval()
        torch.no_grad()
        return model(x).argmax(1)
    ```
    ```python
    import torch


    @torch.no_grad()
    def predict(model: torch.nn.Module, x):
        model.eval()
        return model(x).argmax(1)
    ```

    ## Safety
    Unsafe: results have no gradient history any more, which is the intent. Only where the whole function can do without
    gradients; at module level, in functions that train, and in coroutines it is reported. `set_grad_enabled(False)`
    does take effect as a statement; it is reported when a function never turns gradients on again.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    name = "bare-no-grad-call"
    category = Category.GRADIENTS
    safety = Safety.UNSAFE
    needles = (b"torch", b"grad", b"(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield grad modes that are made and thrown away."""
        for statement in file.index.all(ast.Expr):
            call = statement.value
            if not isinstance(call, ast.Call):
                continue
            name = file.qualified(call.func) or ""
            if name in NO_GRAD_CONTEXTS | ENABLE_GRAD and not call.args and not call.keywords:
                yield self._without_effect(file, statement, call, name)
            elif name in SET_GRAD_ENABLED and _turns_off_for_good(file, call):
                message = "gradients stay off after this function: use `with torch.no_grad():`, or decorate the function"
                yield self.finding(file, call, message)

    def _without_effect(self, file: FileModel, statement: ast.Expr, call: ast.Call, name: str) -> Finding:
        code = file.source.code(call)
        function = file.flow.function(statement)
        if name in ENABLE_GRAD or not isinstance(function, ast.FunctionDef) or statement not in function.body:
            return self.finding(file, call, f"`{code}` as a statement has no effect: put the code that it is for into `with {code}:`")
        no_grad = file.spelling("torch.no_grad", function)
        runs = any(e.happening is Happening.FORWARD for e in file.training.events(function.body))
        if no_grad is None or not runs or not file.roles.may_run_without_gradients(function):
            return self.finding(file, call, f"`{code}` as a statement has no effect: put the code that it is for into `with {code}:`")
        edits: list[Edit] = [DeleteStatement(file.source.span(statement)), AddDecorator(file.source.span(function), f"{no_grad}()")]
        edits += [NeedImport("torch")] if file.lacks_torch(function) else []
        return self.finding(file, call, f"`{code}` as a statement has no effect: decorate `{function.name}` with it", *edits)


def _turns_off_for_good(file: FileModel, call: ast.Call) -> bool:
    """A literal False in a function of a file that never says True, nor uses it as a context."""
    if file.flow.function(call) is None or not call.args or not _is_false(call.args[0]):
        return False
    others = [other for other in file.calls(*SET_GRAD_ENABLED) if other is not call]
    return all(other.args and _is_false(other.args[0]) and isinstance(file.parent(other), ast.Expr) for other in others)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
