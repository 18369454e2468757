"""Reads of element 0, and what they read it from."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_NEUTRAL = frozenset({"data", "detach", "cpu", "numpy", "cuda"})


def reads_element(file: FileModel, node: ast.Subscript) -> bool:
    """`x[0]` as a value that nothing else hangs on: `x[0].zero_()` and `x[0][1]` speak of a tensor with dimensions."""
    zero = isinstance(node.slice, ast.Constant) and node.slice.value == 0 and type(node.slice.value) is int
    parent = file.parent(node)
    chained = isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node
    return zero and isinstance(node.ctx, ast.Load) and not chained


def stripped(node: ast.expr) -> ast.expr:
    """The expression under `.data`, `.cpu()` and their like."""
    while True:
        if isinstance(node, ast.Call) and not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
            inner = node.func
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            inner = node
        else:
            return node
        if inner.attr not in _NEUTRAL:
            return node
        node = inner.value
