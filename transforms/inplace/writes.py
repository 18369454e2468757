"""Statements that do nothing but write to one tensor in place."""

from __future__ import annotations

import ast

METADATA_METHODS = frozenset(
    "resize_ resize_as_ set_ t_ transpose_ squeeze_ unsqueeze_ requires_grad_ detach_ share_memory_ swapaxes_ apply_".split()
)
"""Methods that change more, or something else, than the numbers."""


def is_written_by(statement: ast.stmt, node: ast.expr) -> bool:
    """Whether a statement writes to what `node` (a part of it) stands for: a method, an index, or an operator."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call) and _chain_writes(statement.value, node)
    if isinstance(statement, ast.AugAssign):
        return node is statement.target or _is_indexed(statement.target, node)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return _is_indexed(statement.targets[0], node)
    return False


def _is_indexed(target: ast.expr, node: ast.expr) -> bool:
    """`x[0]` and `x[0][1]` as the target of an assignment."""
    if not isinstance(target, ast.Subscript):
        return False
    while isinstance(target, ast.Subscript) and target is not node:
        target = target.value
    return target is node


def _chain_writes(call: ast.expr, node: ast.expr) -> bool:
    """`x.mul_(a).add_(b)` and `x[0].fill_(1)`: in-place methods all the way down to `node`."""
    methods = 0
    current: ast.expr = call
    while current is not node:
        if isinstance(current, ast.Call) and isinstance(current.func, ast.Attribute):
            name = current.func.attr
            if not name.endswith("_") or name.endswith("__") or name in METADATA_METHODS:
                return False
            methods, current = methods + 1, current.func.value
        elif isinstance(current, ast.Subscript):
            current = current.value
        else:
            return False
    return methods > 0


def is_plain(node: ast.expr) -> bool:
    """Whether an expression is a name with attributes and indices alone."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name)


def written(statement: ast.stmt) -> ast.expr | None:
    """What a statement writes to in place, and does nothing else: `x.op_()`, `x[i] = v`, `x += v`."""
    if isinstance(statement, ast.AugAssign):
        return _base(statement.target)
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        return _base(target) if len(statement.targets) == 1 and isinstance(target, ast.Subscript) else None
    node: ast.expr | None = statement.value if isinstance(statement, ast.Expr) else None
    methods = 0
    while isinstance(node, (ast.Call, ast.Subscript)):
        if isinstance(node, ast.Subscript):
            node = node.value
            continue
        if not isinstance(node.func, ast.Attribute) or not _is_write(node.func.attr):
            return None
        methods, node = methods + 1, node.func.value
    return node if methods and isinstance(node, (ast.Name, ast.Attribute)) else None


def _is_write(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__") and method not in METADATA_METHODS


def _base(target: ast.expr) -> ast.expr | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target if isinstance(target, (ast.Name, ast.Attribute)) else None
