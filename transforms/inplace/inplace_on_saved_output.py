"""Rule `inplace-on-saved-output`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

from .saved import keeps_input, keeps_output
from .writes import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.FloorDiv: "//", ast.Mod: "%"}


class InplaceOnSavedOutput(Rule):
    """In-place write to a tensor that autograd has saved: backward will raise.

    ## Why
    Sigmoid, tanh, relu, exp, softmax, sqrt and others compute their gradient from their own output, and a power from
    its input. When that tensor is written in place, backward raises: "one of the variables needed for gradient
    computation has been modified by an inplace operation".

    ## Example
    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            out = torch.sigmoid(self.fc(x))
            out += x
            return out
    ```
    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            out = torch.sigmoid(self.fc(x))
            out = out + x
            return out
    ```

    ## Safety
    A report: whether the code is ever trained, and where the memory for a copy is best spent, is its owner's to say.
    Silent for what autograd doesn't save: outputs of linear layers, convolutions, normalisation, dropout and sums
    may be written in place, and values without a gradient too.

    ## References
    https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
    """

    name = "inplace-on-saved-output"
    category = Category.INPLACE
    safety = Safety.REPORT
    needles = (b"torch",)
    pattern = re.compile(
        rb"sigmoid|tanh|relu|softmax|exp|sqrt|norm|pow|square|\*\*|ReLU|Sigmoid|Tanh|Softm|reciprocal|std|prod", re.IGNORECASE
    )

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the first write to each tensor that autograd has saved."""
        seen: set[ast.AST] = set()
        for statement in [*file.index.all(ast.AugAssign), *file.index.all(ast.Assign), *file.index.all(ast.Expr)]:
            name = written(statement)
            binding = _binding(file, name) if isinstance(name, ast.Name) else None
            if not isinstance(name, ast.Name) or binding is None or binding in seen:
                continue
            reason = _saved_by(file, name, binding, statement)
            if reason and _is_trained(file, name, binding, statement):
                seen.add(binding)
                message = f"`{name.id}` is {reason} has saved for backward, which will raise: {_advice(file, statement, name)}"
                yield self.finding(file, statement, message)


def _binding(file: FileModel, name: ast.Name) -> ast.Name | None:
    """The one plain assignment, in the same function, that a name has its object from."""
    bindings = file.flow.reaching(name)
    if len(bindings) == 2 and name in bindings:
        # In a loop, what an augmented assignment wrote the round before reaches it too.
        bindings = [binding for binding in bindings if binding is not name]
    if len(bindings) != 1 or not isinstance(bindings[0], ast.Name) or file.flow.function(bindings[0]) is not file.flow.function(name):
        return None
    form, _, path = file.flow.definition(bindings[0])
    return bindings[0] if form is Form.ASSIGNED and not path else None


def _saved_by(file: FileModel, name: ast.Name, binding: ast.Name, statement: ast.stmt) -> str | None:
    """What saves the tensor: the call that made it, or a power of it since."""
    value = file.flow.definition(binding).value
    saved = keeps_output(file, value) if value is not None and binding.lineno < statement.lineno else None
    if saved or value is None:
        return saved
    reads = (n for n in file.kinds.reads(name.id) if binding.lineno < n.lineno < statement.lineno and file.flow.reaching(n) == [binding])
    return next((reason for read in reads if _precedes(file, read, statement) and (reason := keeps_input(file, read))), None)


def _precedes(file: FileModel, read: ast.Name, statement: ast.stmt) -> bool:
    """Whether a statement is sure to come after a read of the name that it writes, on the same path."""
    block, index = file.flow.place(statement)
    return file.flow.statement(read) in block[:index]


def _is_trained(file: FileModel, name: ast.Name, binding: ast.Name, statement: ast.stmt) -> bool:
    """Whether the value has a gradient that is asked for after the write."""
    tracked, function = file.gradients.tracked(file.flow.definition(binding).value), file.flow.function(statement)
    if tracked is False or _is_for_evaluation(statement, file):
        return False
    if _is_forward(file, function):
        return True
    body = function.body if isinstance(function, FUNCTIONS) else file.tree.body
    backwards = [e.node.lineno for e in file.training.events(body) if e.happening is Happening.BACKWARD]
    if any(binding.lineno < line < statement.lineno for line in backwards):
        return False
    return tracked is True and file.backflow.of_name(name)


def _is_forward(file: FileModel, function: ast.AST | None) -> bool:
    owner = file.classes.owner(function) if isinstance(function, FUNCTIONS) and function.name == "forward" else None
    return owner is not None and file.classes.is_module(owner)


def _is_for_evaluation(statement: ast.stmt, file: FileModel) -> bool:
    """Whether a test around the write asks for the mode: `if not self.training:`."""
    tests = (a.test for a in file.flow.ancestors(statement) if isinstance(a, (ast.If, ast.IfExp)))
    return any(
        word in ast.unparse(test)
        for test in tests
        for word in ("training", "is_grad_enabled", "requires_grad", "eval", "test", "export", "infer")
    )


def _advice(file: FileModel, statement: ast.stmt, name: ast.Name) -> str:
    if isinstance(statement, ast.AugAssign) and statement.target is name and type(statement.op) in _OPERATORS:
        return f"write `{name.id} = {name.id} {_OPERATORS[type(statement.op)]} {file.source.code(statement.value)}`"
    if isinstance(statement, ast.Expr):
        return f"use the method without the underscore, and assign what it gives to `{name.id}`"
    return f"write to `{name.id}.clone()`, or choose by torch.where"
