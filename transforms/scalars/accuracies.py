"""Parts of what a function returns that have no dimension, as the accuracies of old ImageNet scripts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.outline import top_level
from torchfix_codemods.model.project import Reach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function

_DEPTH = 5
_IN_PLACE = frozenset({"mul_", "div_", "add_", "sub_"})
_ARITHMETIC = frozenset({"mul", "div", "add", "sub"})
_KEEPS_SHAPE = frozenset("float double half long int to type cpu cuda detach clone contiguous eq ne".split())


def source_call(file: FileModel, node: ast.expr, path: tuple[int, ...] = ()) -> tuple[ast.Call, tuple[int, ...]] | None:
    """The call that a value was unpacked from, and its place there: `b` in `a, b = f()` is `f()[1]`."""
    if isinstance(node, ast.Call):
        return node, path
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        return source_call(file, node.value, (node.slice.value, *path)) if len(path) < _DEPTH else None
    if isinstance(node, ast.Name):
        bindings = file.flow.reaching(node)
        form, value, inner = file.flow.definition(bindings[0]) if len(bindings) == 1 else (None, None, ())
        return source_call(file, value, (*inner, *path)) if form is Form.ASSIGNED and value is not None and len(path) < _DEPTH else None
    return None


def has_no_dimension(file: FileModel, call: ast.Call, path: tuple[int, ...]) -> bool:
    """Whether the function that is called, of this file or of another of the project, is seen to return such values."""
    functions = [(file, function) for function in file.functions.targets(call)] or list(_elsewhere(file, call))
    return bool(functions) and all(_returns_scalars(model, function, path) for model, function in functions)


def _elsewhere(file: FileModel, call: ast.Call) -> Iterator[tuple[FileModel, Function]]:
    symbol = file.kinds.imported.function(call)
    model = file.view.project.model(symbol.path, Reach.NAMES) if symbol is not None else None
    for node in top_level(model.tree.body) if model is not None and symbol is not None else ():
        if isinstance(node, FUNCTIONS) and model is not None and symbol is not None and node.name == symbol.name:
            yield model, node


def _returns_scalars(file: FileModel, function: Function, path: tuple[int, ...]) -> bool:
    returns = file.functions.returns(function)
    return bool(returns) and all(value is not None and _is_scalar_at(file, value, path) for value in returns)


def _is_scalar_at(file: FileModel, value: ast.expr, path: tuple[int, ...]) -> bool:
    if not path:
        return _is_scalar(file, value, _DEPTH)
    elements = _elements(file, value) if len(path) == 1 else None
    return bool(elements) and all(_is_scalar(file, element, _DEPTH) for element in elements or ())


def _elements(file: FileModel, value: ast.expr) -> list[ast.expr] | None:
    """Every value that a list or tuple may hold; None when that isn't shown."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return [value.elt]
    if isinstance(value, ast.Call) and file.qualified(value.func) in {"builtins.tuple", "builtins.list"} and len(value.args) == 1:
        return _elements(file, value.args[0])
    if not isinstance(value, ast.Name):
        return None
    definitions = [file.flow.definition(binding) for binding in file.names.bindings(value)]
    sources = [_elements(file, d.value) if d.form is Form.ASSIGNED and d.value is not None and not d.path else None for d in definitions]
    appended = _appended(file, value)
    known = [source for source in sources if source is not None]
    return [*(e for source in known for e in source), *appended] if len(known) == len(sources) and appended is not None else None


def _appended(file: FileModel, name: ast.Name) -> list[ast.expr] | None:
    """What is appended to a list; None when it is filled in another way too."""
    found: list[ast.expr] = []
    for read in file.kinds.reads(name.id):
        if file.names.scope_of(read) is not file.names.scope_of(name):
            continue
        method = file.parent(read)
        call = file.parent(method) if isinstance(method, ast.Attribute) else None
        if isinstance(method, ast.Attribute) and method.attr == "append" and isinstance(call, ast.Call):
            found += call.args
        elif isinstance(method, ast.Attribute) or isinstance(getattr(method, "ctx", None), ast.Store):
            return None
    return found


def _is_scalar(file: FileModel, node: ast.expr, depth: int) -> bool:
    """A sum of a flat tensor, with arithmetic by numbers behind it, through names."""
    if not depth:
        return False
    if file.kinds.is_kind(node, Kind.SCALAR_TENSOR):
        return True
    if isinstance(node, ast.Name):
        values = [_assigned_value(file, binding) for binding in file.flow.reaching(node) if binding is not node]
        return bool(values) and all(value is not None and _is_scalar(file, value, depth - 1) for value in values)
    if isinstance(node, ast.BinOp):
        scalars = [_is_scalar(file, side, depth - 1) or _is_number(file, side) for side in (node.left, node.right)]
        return all(scalars) and not all(_is_number(file, side) for side in (node.left, node.right))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_scalar_method(file, node, node.func, depth)


def _assigned_value(file: FileModel, binding: ast.AST) -> ast.expr | None:
    form, value, path = file.flow.definition(binding)
    # What is written in place keeps its shape: `total *= 100` is as flat as `total` was.
    return binding if form is Form.AUGMENTED and isinstance(binding, ast.Name) else value if form is Form.ASSIGNED and not path else None


def _is_scalar_method(file: FileModel, call: ast.Call, func: ast.Attribute, depth: int) -> bool:
    if func.attr in {"sum", "mean"}:
        keeps = any(k.arg not in {"dim", "dtype"} for k in call.keywords)
        return not keeps and _is_flat(func.value)
    if func.attr in _IN_PLACE or (func.attr in _KEEPS_SHAPE and func.attr not in {"eq", "ne"}):
        return _is_scalar(file, func.value, depth - 1)
    return func.attr in _ARITHMETIC and all(_is_number(file, a) for a in call.args) and _is_scalar(file, func.value, depth - 1)


def _is_number(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node)
    return fact is not None and fact.kind is Kind.NUMBER


def _is_flat(node: ast.expr) -> bool:
    """Whether a tensor is sure to have one dimension: `correct[:k].reshape(-1).float()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in {"view", "reshape"}:
            return [ast.unparse(argument) for argument in node.args] in (["-1"], ["(-1,)"], ["[-1]"])
        if node.func.attr in {"flatten", "ravel"}:
            return not node.args and not node.keywords
        if node.func.attr not in _KEEPS_SHAPE:
            return False
        node = node.func.value
    return False
