"""Whether a value is the output of a model whose last step is an activation."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Fact, Kind

from .activation import LAYERS, activated, only_binding, unshaped

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

    from .activation import Activation

_DEPTH = 3
"""Modules inside modules that are looked into."""


def comes_from_model(file: FileModel, value: ast.expr, activation: Activation, depth: int = _DEPTH) -> bool:
    """Whether a value is what a model of the file (or one element of the tuple that it) returns, with the activation as last step."""
    core = unshaped(value)
    path: tuple[int, ...] = ()
    binding = only_binding(file, core, unpacked=True)
    if binding is not None:
        _, held, path = file.flow.definition(binding)
        core = held if held is not None else core
    fact = file.fact(core.func) if isinstance(core, ast.Call) else None
    return fact is not None and fact.proven and fact.kind is Kind.MODULE and depth > 0 and _ends_in(file, fact, activation, path, depth - 1)


def _ends_in(file: FileModel, module: Fact, activation: Activation, path: tuple[int, ...], depth: int) -> bool:
    if isinstance(module.origin, str):
        return not path and (module.origin in LAYERS[activation] or _last_layer_ends_in(file, module, activation, depth))
    forward = file.classes.method(module.origin, "forward") if isinstance(module.origin, ast.ClassDef) else None
    results = [_element(value, path) for value in file.functions.returns(forward)] if forward else []
    return bool(results) and all(result is not None and _is_last(file, result, activation, depth) for result in results)


def _last_layer_ends_in(file: FileModel, module: Fact, activation: Activation, depth: int) -> bool:
    last = module.call.args[-1] if module.origin == "torch.nn.Sequential" and module.call and module.call.args else None
    inner = file.fact(last) if last is not None else None
    return inner is not None and inner.kind is Kind.MODULE and depth > 0 and _ends_in(file, inner, activation, (), depth - 1)


def _element(value: ast.expr | None, path: tuple[int, ...]) -> ast.expr | None:
    if not path:
        return value
    literal = isinstance(value, ast.Tuple) and len(path) == 1 and path[0] < len(value.elts)
    return value.elts[path[0]] if literal else None  # type: ignore[union-attr]  # just tested


def _is_last(file: FileModel, value: ast.expr, activation: Activation, depth: int) -> bool:
    return activated(file, value, activation) is not None or comes_from_model(file, value, activation, depth)
