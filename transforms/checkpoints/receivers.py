"""What a loaded checkpoint goes into."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_INERT = frozenset({"builtins.print", "builtins.len", "builtins.isinstance", "builtins.type", "builtins.list", "builtins.sorted"})


def receivers(file: FileModel, node: ast.AST, keys: tuple[object, ...]) -> list[ast.expr] | None:
    """The objects whose `load_state_dict` is given the part under some keys of a loaded value; None where it goes elsewhere too."""
    parent = file.parent(node)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        target = parent.targets[0]
        reads = [read for read in file.kinds.reads(target.id) if target in file.flow.reaching(read)]
        return _all([receivers(file, read, keys) for read in reads])
    if isinstance(parent, ast.Subscript) and parent.value is node and keys and isinstance(parent.slice, ast.Constant):
        return receivers(file, parent, keys[1:]) if parent.slice.value == keys[0] else []
    if isinstance(parent, (ast.Compare, ast.Delete, ast.FormattedValue, ast.Expr)):
        return []
    if isinstance(parent, ast.Attribute):
        return _through_get(file, parent, keys)
    if isinstance(parent, ast.keyword):
        parent = file.parent(parent)
    return _argument(file, parent, keys) if isinstance(parent, ast.Call) else None


def _through_get(file: FileModel, attribute: ast.Attribute, keys: tuple[object, ...]) -> list[ast.expr] | None:
    call = file.parent(attribute)
    if not isinstance(call, ast.Call) or call.func is not attribute or attribute.attr not in {"get", "pop", "keys"}:
        return None
    key = call.args[0] if call.args else None
    if attribute.attr == "keys" or (keys and isinstance(key, ast.Constant) and key.value != keys[0]):
        return []
    return receivers(file, call, keys[1:]) if keys and isinstance(key, ast.Constant) else None


def _argument(file: FileModel, call: ast.Call, keys: tuple[object, ...]) -> list[ast.expr] | None:
    if file.qualified(call.func) in _INERT:
        return []
    loads = isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
    return [call.func.value] if loads and not keys and isinstance(call.func, ast.Attribute) else None


def _all(found: list[list[ast.expr] | None]) -> list[ast.expr] | None:
    known = [each for each in found if each is not None]
    return [receiver for each in known for receiver in each] if len(known) == len(found) else None
