"""What code writes into a tensor in place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRITE_NUMBERS = frozenset(
    """
    zero_ fill_ uniform_ normal_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_
    requires_grad_ resize_ resize_as_ t_ transpose_ squeeze_ unsqueeze_ detach_
    """.split()
)
"""Methods that write nothing with a history."""


def written_into(parents: Mapping[ast.AST, ast.AST], use: ast.expr) -> list[ast.expr]:
    """What is written into a tensor, or into a part of it, where it is used, with autograd looking on."""
    node, parent = use, parents[use]
    while isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
        node, parent = parent, parents[parent]
    user = parents.get(parent)
    if isinstance(parent, ast.keyword):
        return list(user.args) if parent.arg == "out" and isinstance(user, ast.Call) else []
    if isinstance(parent, ast.Attribute) and isinstance(user, ast.Call) and user.func is parent and _writes(parent.attr):
        return [*user.args, *(keyword.value for keyword in user.keywords)]
    if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Store):
        while isinstance(user, (ast.Tuple, ast.List, ast.Starred)):
            user = parents[user]
        return [user.value] if isinstance(user, (ast.Assign, ast.AugAssign)) else []
    return []


def _writes(method: str) -> bool:
    return method.endswith("_") and not method.startswith("_") and method not in _WRITE_NUMBERS
