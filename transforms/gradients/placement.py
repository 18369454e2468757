"""Where gradients are cleared in a training loop."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.flow import Loop


def place_for_clearing(file: FileModel, loop: Loop, backward: ast.Call | ast.stmt) -> ast.stmt:
    """The statement that zero_grad goes before: the forward of the iteration, or the backward in a block of its own."""
    statement = file.flow.statement(backward)
    while isinstance(parent := file.parent(statement), ast.With) and "scale_loss" in ast.unparse(parent.items[0]):
        statement = parent
    inner = [other for other in file.flow.loops(backward) if loop in file.flow.loops(other)]
    if inner:
        # Several backwards for one step: cleared once, before the loop that runs them.
        return inner[-1]
    if file.parent(statement) is not loop:
        return statement
    for candidate in loop.body:
        if candidate is statement or _computes(file, candidate):
            return candidate
    return statement


def _computes(file: FileModel, statement: ast.stmt) -> bool:
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    if any(e.happening is Happening.FORWARD for e in file.training.events([statement], depth=1)):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    fact = file.fact(statement.value)
    return fact is not None and fact.kind is Kind.SCALAR_TENSOR
