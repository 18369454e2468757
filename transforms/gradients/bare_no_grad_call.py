"""Rule `bare-no-grad-call`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import DeleteStatement
from torchfix_codemods.effects import MAY_FREE_GRAPHS, RECORDS_NO_GRADIENTS, SAVES_LESS_FOR_BACKWARD
from torchfix_codemods.model import Happening, Recording
from torchfix_codemods.model.torch_api import ENABLE_GRAD, NO_GRAD_CONTEXTS, SET_GRAD_ENABLED
from torchfix_codemods.rule import Category, Rule, Safety

from .guards import decoration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_HARMLESS_AROUND = (ast.For, ast.While, ast.With, ast.Try)
"""Blocks inside which the statement is meant for the whole function; a branch may decide whether it is meant at all."""


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
    gradients; at module level, in a branch, in functions that train, and in coroutines it is reported. Where gradients
    are off anyway, the statement is taken away, which is safe. `set_grad_enabled(False)` does take effect as a
    statement; it is reported when a function that is called by others never turns gradients on again.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    name = "bare-no-grad-call"
    category = Category.GRADIENTS
    safety = Safety.SAFE
    effects = (
        RECORDS_NO_GRADIENTS,
        SAVES_LESS_FOR_BACKWARD,
        MAY_FREE_GRAPHS,
    )
    needles = (b"torch",)
    pattern = re.compile(rb"no_grad|inference_mode|enable_grad|set_grad_enabled")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield grad modes that are made and thrown away, or turned off for good."""
        for statement in file.index.all(ast.Expr):
            value = statement.value
            name = file.qualified(value.func if isinstance(value, ast.Call) else value) or ""
            if name in NO_GRAD_CONTEXTS | ENABLE_GRAD and not _is_turned_off(value):
                yield self._without_effect(file, statement, name)
            elif name in SET_GRAD_ENABLED and isinstance(value, ast.Call) and _turns_off_for_good(file, value):
                message = "gradients stay off after this function: use `with torch.no_grad():`, or decorate the function"
                yield self.finding(file, value, message)

    def _without_effect(self, file: FileModel, statement: ast.Expr, name: str) -> Finding:
        code = f"{ast.unparse(getattr(statement.value, 'func', statement.value))}()"
        message = f"`{file.source.code(statement.value)}` as a statement has no effect"
        function = file.flow.function(statement)
        delete = DeleteStatement(file.source.span(statement))
        if name in NO_GRAD_CONTEXTS and file.gradients.recording(statement) is Recording.OFF:
            return self.finding(file, statement.value, f"{message}, and gradients are off here: leave it out", delete)
        if name in ENABLE_GRAD or not isinstance(function, ast.FunctionDef) or not _may_be_decorated(file, statement, function):
            return self.finding(file, statement.value, f"{message}: put the code that it is for into `with {code}:`")
        _, edits = decoration(file, getattr(statement.value, "func", statement.value), function)
        return self.finding(
            file,
            statement.value,
            f"{message}: decorate `{function.name}` with it",
            *edits,
            *([delete] if edits else []),
            safety=Safety.UNSAFE,
        )


def _is_turned_off(value: ast.expr) -> bool:
    """`inference_mode(False)`, or a mode that isn't known."""
    given = [*value.args, *(k.value for k in value.keywords)] if isinstance(value, ast.Call) else []
    return not all(isinstance(mode, ast.Constant) and mode.value is True for mode in given)


def _may_be_decorated(file: FileModel, statement: ast.Expr, function: ast.FunctionDef) -> bool:
    """Whether the statement is meant for all of a function that runs a model, and can do without gradients."""
    for ancestor in file.flow.ancestors(statement):
        if ancestor is function:
            break
        if not isinstance(ancestor, _HARMLESS_AROUND):
            return False
    if function.name == "forward":
        return False  # who trains the module, trains through it
    runs = any(e.happening is Happening.FORWARD for e in file.training.events(function.body))
    return runs and file.roles.may_run_without_gradients(function)


def _turns_off_for_good(file: FileModel, call: ast.Call) -> bool:
    """A literal False in a function of a file that never says True, nor uses it as a context; a program may do so at its start."""
    function = file.flow.function(call)
    if function is None or getattr(function, "name", "") == "main" or not _is_false(call):
        return False
    others = [other for other in file.calls(*SET_GRAD_ENABLED) if other is not call]
    return all(_is_false(other) and isinstance(file.parent(other), ast.Expr) for other in others)


def _is_false(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False
