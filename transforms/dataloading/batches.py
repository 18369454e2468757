"""What loops do with the batches of a loader: where they are, and where they are moved to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS

from .loaders import is_literal, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_VIEWS = frozenset({"view", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "permute", "narrow", "items", "values"})
"""What gives the same memory in another shape, which stays pinned."""
_ON_DEVICE = ("device", ".cuda(", ".to(")


def moves(file: FileModel, loop: ast.For) -> Iterator[ast.Call]:
    """Moves of the loop's own batch to a device that isn't the CPU by name."""
    targets: set[ast.AST] = {node for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for node in (inner for statement in loop.body for inner in ast.walk(statement)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"to", "cuda"}:
            if _is_part(file, node.func.value, targets, 3) and _is_to_device(file, node):
                yield node


def _is_part(file: FileModel, node: ast.expr, targets: set[ast.AST], depth: int) -> bool:
    """Whether a value is the batch, or a part or view of it: `batch[0]`, `x` of `x, y = batch`, `v` of `batch.items()`."""
    if isinstance(node, ast.Subscript):
        return _is_part(file, node.value, targets, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
        return _is_part(file, node.func.value, targets, depth)
    if not isinstance(node, ast.Name) or not depth:
        return False
    bindings = file.flow.reaching(node)
    return bool(bindings) and all(binding in targets or _comes_from(file, binding, targets, depth - 1) for binding in bindings)


def _comes_from(file: FileModel, binding: ast.AST, targets: set[ast.AST], depth: int) -> bool:
    form, value, _ = file.flow.definition(binding)
    taken = form in {Form.ASSIGNED, Form.ITERATED} and value is not None
    return taken and not isinstance(value, ast.Tuple) and _is_part(file, value, targets, depth)  # type: ignore[arg-type]  # just tested


def _is_to_device(file: FileModel, move: ast.Call) -> bool:
    named = [keyword.value for keyword in move.keywords if keyword.arg == "device"]
    if isinstance(move.func, ast.Attribute) and move.func.attr == "cuda":
        return len(move.args) <= 1
    if len(move.args) + len(named) not in {1, 2}:
        return False
    target = (named or move.args)[0]
    fact, text = file.fact(target), ast.unparse(target)
    is_device = (fact is not None and fact.kind is Kind.DEVICE) or "dev" in text.lower() or "cuda" in text
    values = file.origins.of(target)
    return is_device and not (bool(values) and all(_is_cpu(value) for value in values))


def _is_cpu(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    return is_literal(value, "cpu")


def is_on_device(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset may hold tensors of a device already, or gives them out."""
    return _mentions_device(file, option(call, "dataset"), 4)


def _mentions_device(file: FileModel, node: ast.AST | None, depth: int) -> bool:
    if node is None or not depth:
        return False
    if any(word in ast.unparse(node) for word in _ON_DEVICE):
        return True
    for name in ast.walk(node):
        if not isinstance(name, (ast.Name, ast.Attribute)) or not isinstance(name.ctx, ast.Load):
            continue
        definition = file.classes.resolve(name)
        values = [definition] if definition else [value for value in file.origins.of(name) if value is not name]
        if any(_mentions_device(file, value, depth - 1) for value in values if value is not node):
            return True
    return False


def collates_tensors(file: FileModel, call: ast.Call) -> bool:
    """Whether batches are made of tensors: by torch's own function, or one of the file that returns tuples or dictionaries."""
    given = option(call, "collate_fn")
    if given is None or is_literal(given, None):
        return True
    if not isinstance(given, ast.Name):
        return False
    functions = [binding for binding in file.names.bindings(given) if isinstance(binding, FUNCTIONS)]
    returned = [value for function in functions for value in file.functions.returns(function)]
    return bool(returned) and all(isinstance(v, (ast.Tuple, ast.Dict)) or (v is not None and file.kinds.is_tensor(v)) for v in returned)
