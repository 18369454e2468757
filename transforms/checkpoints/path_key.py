"""Whether two expressions name the same file: paths folded to keys that compare equal."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model.flow import Form

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel


def path_key(file: FileModel, node: ast.expr) -> tuple[object, ...] | None:
    """A key for a path expression; equal keys mean the same file in the same run. None when it can't be told."""
    if isinstance(node, ast.Constant):
        return ("text", node.value) if isinstance(node.value, str) else None
    imported = file.view.constant(file.qualified(node))
    if imported is not None:
        return ("text", imported)
    if isinstance(node, ast.Name):
        return _name_key(file, node)
    if isinstance(node, ast.JoinedStr):
        return _parts_key(file, "text", node.values)
    if isinstance(node, ast.FormattedValue):
        return path_key(file, node.value) if node.format_spec is None else None
    if isinstance(node, ast.Attribute):
        identity = file.identities.of(node)
        return ("object", identity) if identity else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        return _parts_key(file, type(node.op).__name__, [node.left, node.right])
    if isinstance(node, ast.Call) and file.qualified(node.func) in {"os.path.join", "pathlib.Path", "builtins.str"} and not node.keywords:
        return _parts_key(file, file.qualified(node.func) or "", node.args)
    return None


def _name_key(file: FileModel, name: ast.Name) -> tuple[object, ...] | None:
    bindings = file.names.bindings(name)
    if len(bindings) != 1:
        return None
    form, value, path = file.flow.definition(bindings[0])
    if form is Form.ASSIGNED and value is not None and not path:
        folded = path_key(file, value)
        if folded:
            return folded
    scope = file.names.scope_of(name)
    return ("name", scope.node if scope else None, name.id) if form in {Form.ASSIGNED, Form.PARAMETER} else None


def _parts_key(file: FileModel, head: str, parts: list[ast.expr]) -> tuple[object, ...] | None:
    keys = [path_key(file, part) for part in parts]
    return None if None in keys else (head, *keys)
