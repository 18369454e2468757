"""The old `Variable`: calls of it, and its import once nothing uses it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import DeleteStatement

if TYPE_CHECKING:
    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel

VARIABLE = "torch.autograd.Variable"
_NAMES = (VARIABLE, "torch.autograd.variable.Variable")


def variables(file: FileModel) -> list[ast.Call]:
    """The calls of torch's Variable with one tensor."""
    calls = file.calls(*_NAMES)
    return [
        call for call in calls if len(call.args) == 1 and not isinstance(call.args[0], ast.Starred) and all(k.arg for k in call.keywords)
    ]


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def is_constant(node: ast.expr | None, value: bool) -> bool:
    """Whether an expression is the literal True (or False)."""
    return isinstance(node, ast.Constant) and node.value is value


def import_without(file: FileModel, calls: list[ast.Call]) -> list[Edit]:
    """Delete the import of a name that only these calls use, where the statement imports nothing else."""
    names = [call.func for call in calls if isinstance(call.func, ast.Name)]
    if not names or len(names) != len(calls) or file.source.path.endswith("__init__.py"):
        return []
    bindings = file.names.bindings(names[0])
    if len(bindings) != 1 or len(file.kinds.reads(names[0].id)) != len(names) or "__all__" in file.source.text:
        return []
    statement = file.parent(bindings[0])
    alone = isinstance(statement, ast.ImportFrom) and len(statement.names) == 1 and file.parent(statement) is file.tree
    return [DeleteStatement(file.source.span(statement))] if alone and isinstance(statement, ast.stmt) else []
