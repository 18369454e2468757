"""Rule `inplace-on-saved-output`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Recording
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

from .writes import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_WORDS = ("sigmoid", "tanh", "relu", "exp", "softmax", "log_softmax", "sqrt", "rsqrt")
_FUNCTIONS = frozenset(f"{module}.{word}" for module in ("torch", "torch.nn.functional") for word in _WORDS)
_LAYERS = frozenset(f"torch.nn.{name}" for name in ("Sigmoid", "Tanh", "ReLU", "Softmax", "LogSoftmax"))


class InplaceOnSavedOutput(Rule):
    """In-place write to the output of an activation that autograd has saved.

    ## Why
    Sigmoid, tanh, relu, exp, softmax and sqrt compute their gradient from their output. A write to it makes the backward
    raise: "one of the variables needed for gradient computation has been modified by an inplace operation".

    ## Example
    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def forward(self, x):
            out = torch.sigmoid(x)
            out += x
            return out
    ```
    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def forward(self, x):
            out = torch.sigmoid(x)
            out = out + x
            return out
    ```

    ## Safety
    Only reported: the write is harmless when no gradient is computed. Found in the forward of a module, and where the
    value is proven to have a history. Outputs that nothing saves (of linear layers, convolutions, normalisations) may be
    written, and are.

    ## References
    https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
    """

    name = "inplace-on-saved-output"
    category = Category.INPLACE
    safety = Safety.REPORT
    needles = (b"torch",)

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield in-place writes to a name that holds such an output."""
        statements: list[ast.stmt] = [*file.index.all(ast.AugAssign), *file.index.all(ast.Expr), *file.index.all(ast.Assign)]
        for statement in statements:
            target = written(statement)
            if isinstance(target, ast.Name):
                producer = _producer(file, target)
                if producer is not None and _has_history(file, statement, producer):
                    text = file.source.code(producer.func)
                    advice = f"compute a new value (`{target.id} = {target.id} + …`)"
                    yield self.finding(file, statement, f"`{target.id}` is the output that `{text}` has saved for backward: {advice}")


def _producer(file: FileModel, name: ast.Name) -> ast.Call | None:
    """The call whose output the name holds, when it is one that saves it."""
    bindings = [b for b in file.flow.reaching(name) if not isinstance(file.parent(b), ast.AugAssign)]
    if len(bindings) != 1 or isinstance(bindings[0], ast.arg):
        return None
    form, value, path = file.flow.definition(bindings[0])
    if form is not Form.ASSIGNED or path or not isinstance(value, ast.Call):
        return None
    qualified = file.qualified(value.func)
    if qualified:
        return value if qualified in _FUNCTIONS else None
    if isinstance(value.func, ast.Attribute) and value.func.attr in _WORDS and file.kinds.is_tensor(value.func.value):
        return value
    fact = file.fact(value.func)
    return value if fact is not None and fact.proven and fact.origin in _LAYERS else None


def _has_history(file: FileModel, statement: ast.stmt, producer: ast.Call) -> bool:
    if file.gradients.recording(statement) is not Recording.ON or file.gradients.recording(producer) is not Recording.ON:
        return False
    if file.gradients.tracked(producer) is True:
        return True
    function = file.flow.function(statement)
    owner = file.functions.enclosing_class(statement)
    in_forward = isinstance(function, FUNCTIONS) and function.name == "forward" and owner is not None and file.classes.is_module(owner)
    return in_forward and file.gradients.tracked(producer) is not False
