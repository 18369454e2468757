"""Leaves that require gradients, and statements that write to something in place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.torch_api import FACTORIES

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_NO_WRITES = frozenset({"requires_grad_", "detach_", "share_memory_", "resize_", "set_", "rename_"})
"""Methods that change what a tensor is, and not its values."""


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
    return method.endswith("_") and not method.endswith("__") and method not in _NO_WRITES


def _base(target: ast.expr) -> ast.expr | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target if isinstance(target, (ast.Name, ast.Attribute)) else None


def is_leaf(file: FileModel, node: ast.expr) -> bool:
    """Whether a value is proven to be a leaf that requires gradients."""
    if isinstance(node, ast.Attribute) and node.attr in {"data", "grad"}:
        return False
    if _may_be_frozen(file):
        return False
    if file.kinds.is_kind(node, Kind.PARAMETER):
        return not isinstance(node, ast.Name) or not _is_rebound(file, node)
    if not isinstance(node, ast.Name):
        return False
    made = [b for b in file.names.bindings(node) if not _is_augmented(file, b)]
    values = [file.flow.definition(b).value for b in made if file.flow.definition(b).form is Form.ASSIGNED]
    return bool(made) and len(values) == len(made) and all(value is not None and _makes_leaf(file, value) for value in values)


def _is_augmented(file: FileModel, binding: ast.AST) -> bool:
    return isinstance(file.parent(binding), ast.AugAssign)


def _is_rebound(file: FileModel, name: ast.Name) -> bool:
    """Whether the name stands for something else at another place, so that which of them is written isn't certain."""
    return len([b for b in file.names.bindings(name) if not _is_augmented(file, b)]) > 1


def _may_be_frozen(file: FileModel) -> bool:
    """Whether the file turns the gradients of some tensor off: writing to it is then allowed."""
    stores = any(isinstance(node.ctx, ast.Store) for node in file.attributes("requires_grad"))
    return stores or any(_is_false(call) for call in file.methods("requires_grad_"))


def _is_false(call: ast.Call) -> bool:
    given = [*call.args, *(k.value for k in call.keywords)]
    return bool(given) and not (isinstance(given[0], ast.Constant) and given[0].value is True)


def _makes_leaf(file: FileModel, value: ast.expr) -> bool:
    """`torch.zeros(3, requires_grad=True)`, `nn.Parameter(x)`, `torch.zeros(3).requires_grad_()`."""
    if not isinstance(value, ast.Call):
        return False
    name = file.qualified(value.func)
    if name in FACTORIES:
        return any(k.arg == "requires_grad" and isinstance(k.value, ast.Constant) and k.value.value is True for k in value.keywords)
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_" and not value.args and not value.keywords:
        inner = value.func.value
        return isinstance(inner, ast.Call) and file.qualified(inner.func) in FACTORIES
    return name in {"torch.nn.Parameter", "torch.nn.parameter.Parameter"} and not value.keywords and len(value.args) == 1
