"""All that a file does with one criterion."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_MOVES = frozenset({"to", "cuda", "cpu"})


def calls_of_criterion(file: FileModel, call: ast.Call, constructor: ast.Call) -> list[ast.Call] | None:
    """Every call of the criterion that one call is of; None when the criterion also goes where the file doesn't show it."""
    if _unmoved(call.func) is constructor:
        return [call]
    target = _holder(file, constructor)
    if target is None:
        return None
    uses = [use for use in _uses(file, target) if not _is_moved_to_itself(file, use)]
    calls = [parent for use in uses if isinstance(parent := file.parent(use), ast.Call) and parent.func is use]
    known = len(calls) == len(uses) and all(_is_of(file, use, constructor) for use in uses)
    return calls if known and call in calls else None


def _unmoved(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        node = node.func.value
    return node


def _holder(file: FileModel, constructor: ast.Call) -> ast.Name | ast.Attribute | None:
    """The name, or the attribute of self, that a constructor call is assigned to, and nothing else."""
    statement = file.flow.statement(constructor)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or _unmoved(statement.value) is not constructor:
        return None
    target = statement.targets[0]
    if isinstance(target, ast.Name):
        return target
    own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return target if own else None  # type: ignore[return-value]  # just tested


def _uses(file: FileModel, target: ast.Name | ast.Attribute) -> list[ast.expr]:
    if isinstance(target, ast.Name):
        return [use for use in file.kinds.reads(target.id) if target in file.names.bindings(use)]
    return [use for use in file.attributes(target.attr) if isinstance(use.ctx, ast.Load)]


def _is_moved_to_itself(file: FileModel, use: ast.expr) -> bool:
    """`criterion = criterion.to(device)` and `criterion.cuda()`."""
    method = file.parent(use)
    call = file.parent(method)
    return isinstance(method, ast.Attribute) and method.attr in _MOVES and isinstance(call, ast.Call) and call.func is method


def _is_of(file: FileModel, use: ast.expr, constructor: ast.Call) -> bool:
    fact = file.fact(use)
    return fact is not None and fact.call is constructor
