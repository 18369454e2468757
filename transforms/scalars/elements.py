"""Tensors that are read one element at a time."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model.flow import Form

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel


def is_single_element(file: FileModel, node: ast.expr) -> bool:
    """`x[i]`, `x[i, j]` or `x[i][j]` with the number of each round of a loop, or the variable of a loop over a tensor."""
    if isinstance(node, ast.Name):
        return any(_is_element(file, binding) for binding in file.flow.reaching(node))
    places: list[ast.expr] = []
    while isinstance(node, ast.Subscript):
        places += node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        node = node.value
    fact = file.fact(node)
    may_be_tensor = fact is None or fact.is_tensor
    return bool(places) and may_be_tensor and any(isinstance(place, ast.Name) and _counts(file, place) for place in places)


def _is_element(file: FileModel, binding: ast.AST) -> bool:
    form, value, path = file.flow.definition(binding)
    return form is Form.ITERATED and value is not None and not path and file.kinds.is_tensor(value)


def _counts(file: FileModel, place: ast.Name) -> bool:
    """Whether a name holds the number of the round: `for i in range(…)`, `for i, _ in enumerate(…)`."""
    for binding in file.flow.reaching(place):
        form, value, path = file.flow.definition(binding)
        called = file.qualified(value.func) if isinstance(value, ast.Call) else None
        if form is Form.ITERATED and ((called == "builtins.range" and not path) or (called == "builtins.enumerate" and path[:1] == (0,))):
            return True
    return False
