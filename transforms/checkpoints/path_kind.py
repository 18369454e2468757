"""Whether a value is sure to be the path of a file: text, or a `pathlib.Path`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_PATHS = frozenset(
    {"os.path.join", "os.path.abspath", "os.path.expanduser", "os.path.realpath", "os.path.normpath", "os.fspath", "os.getenv"}
    | {"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.Path.cwd", "pathlib.Path.home", "builtins.str"}
)
_METHODS = frozenset("format joinpath with_suffix with_name resolve expanduser absolute strip replace".split())
_TYPES = frozenset({"builtins.str", "pathlib.Path", "os.PathLike"})
_DEPTH = 6


def is_path(file: FileModel, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether an expression is text or a path, whichever of its definitions holds."""
    if not depth:
        return False
    fact = file.fact(node)
    if fact is not None and fact.kind is Kind.TEXT:
        return fact.proven
    if isinstance(node, ast.Name):
        return _is_bound_to_path(file, node, depth)
    if isinstance(node, ast.NamedExpr):
        return is_path(file, node.value, depth - 1)
    if isinstance(node, ast.BinOp):
        return any(is_path(file, side, depth - 1) for side in (node.left, node.right))
    if not isinstance(node, ast.Call):
        return False
    if file.qualified(node.func) in _PATHS:
        return True
    return isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and is_path(file, node.func.value, depth - 1)


def _is_bound_to_path(file: FileModel, name: ast.Name, depth: int) -> bool:
    bindings = file.flow.reaching(name)
    return bool(bindings) and all(_gives_path(file, binding, depth) for binding in bindings)


def _gives_path(file: FileModel, binding: ast.AST, depth: int) -> bool:
    if isinstance(binding, ast.arg):
        return binding.annotation is not None and file.qualified(binding.annotation) in _TYPES
    form, value, path = file.flow.definition(binding)
    return form is Form.ASSIGNED and not path and value is not None and is_path(file, value, depth - 1)
