"""Rule `discarded-tensor-move`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceStatement
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_MOVES = ("to", "cuda", "cpu", "float", "double", "half", "long", "int")


class DiscardedTensorMove(Rule):
    """Tensor that is moved as a statement, and stays where it was.

    ## Why
    `x.to(device)` returns a new tensor and leaves `x` alone; only modules move in place.

    ## Example
    ```python
    import torch

    x = torch.ones(2)
    x.to(torch.float64)
    ```
    ```python
    import torch

    x = torch.ones(2)
    x = x.to(torch.float64)
    ```

    ## Safety
    Unsafe: what did nothing now acts, which is the intent. Only for values that are proven to be tensors; names of an
    outer scope are reported.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html
    """

    name = "discarded-tensor-move"
    category = Category.DEVICES
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch",)
    pattern = re.compile(rb"^[ \t]*[\w.]+\.(to|cuda|cpu|float|double|half|long|int)\(", re.MULTILINE)

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield statements that are nothing but the move of a tensor."""
        for call in file.methods(*_MOVES):
            statement = file.parent(call)
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            if not isinstance(statement, ast.Expr) or not isinstance(receiver, (ast.Name, ast.Attribute)) or not _is_tensor(file, receiver):
                continue
            name = file.source.code(receiver)
            message = f"`{name}` stays as it was: assign the result, `{name} = {name}.{call.func.attr}(…)`"  # type: ignore[attr-defined]  # a method
            code = f"{name} = {file.source.code(call)}"
            edits = [ReplaceStatement(file.source.span(statement), code)] if _may_assign(file, receiver, call) else []
            yield self.finding(file, call, message, *edits)


def _is_tensor(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node)
    if fact is not None and fact.proven:
        return fact.is_tensor and fact.kind is not Kind.PARAMETER
    return isinstance(node, ast.Name) and _is_batch(file, node)


def _is_batch(file: FileModel, name: ast.Name) -> bool:
    """A part of what a proven DataLoader gives."""
    for binding in file.flow.reaching(name):
        form, value, path = file.flow.definition(binding)
        source = (
            value.args[0] if isinstance(value, ast.Call) and file.qualified(value.func) == "builtins.enumerate" and value.args else value
        )
        fact = file.fact(source) if form is Form.ITERATED and source is not None else None
        if fact is None or not fact.proven or fact.kind is not Kind.LOADER or not path:
            return False
    return bool(file.flow.reaching(name))


def _may_assign(file: FileModel, receiver: ast.expr, call: ast.Call) -> bool:
    """Whether the name is the function's own; an assignment would make another of an outer one."""
    if isinstance(receiver, ast.Attribute):
        return isinstance(receiver.value, ast.Name) and receiver.value.id == "self"
    scope = file.names.scope_of(receiver) if isinstance(receiver, ast.Name) else None
    return scope is not None and scope.node is (file.flow.function(call) or file.tree)
