"""Generators of random numbers that the process of a loader makes, and that its workers get copies of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model.torch_api import LOADER

from .datasets import DATASET, origin_of
from .loaders import has_no_workers, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function

_GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "torch.Generator"})


def copied_generators(file: FileModel) -> dict[ast.expr, str]:
    """Each generator that `__getitem__` of a dataset draws from, where it is made, with its name."""
    return dict(_drawn(file))


def _drawn(file: FileModel) -> Iterator[tuple[ast.expr, str]]:
    for definition in file.index.all(ast.ClassDef):
        getter = file.classes.method(definition, "__getitem__")
        if getter is not None and _may_be_loaded_by_workers(file, definition):
            for function in _run_by(file, definition, getter):
                yield from _drawn_from(file, definition, function)


def _may_be_loaded_by_workers(file: FileModel, definition: ast.ClassDef) -> bool:
    """A dataset, unless all loaders over it that the file shows have no workers."""
    loaders = [call for call in file.calls(LOADER) if definition is _class_of(file, option(call, "dataset"))]
    if loaders:
        return not all(has_no_workers(file, call) for call in loaders)
    return DATASET in set(file.classes.origins(definition))


def _class_of(file: FileModel, dataset: ast.expr | None) -> object:
    return origin_of(file, dataset) if dataset is not None else None


def _run_by(file: FileModel, definition: ast.ClassDef, function: Function) -> list[Function]:
    """A method, and the methods that it calls on itself."""
    found = [function]
    for current in found:
        for node in ast.walk(current):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                method = file.classes.method(definition, node.attr)
                if method is not None and method not in found and method.name != "__init__":
                    found.append(method)
    return found


def _drawn_from(file: FileModel, definition: ast.ClassDef, function: Function) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(function):
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            made = file.classes.values(definition, node.attr)
            if len(made) == 1 and _makes_generator(file, made[0]) and not _is_remade(file, node.attr, made[0]):
                yield made[0], f"self.{node.attr}"
        elif isinstance(node, ast.Name) and file.names.scope_of(node) is file.index.scopes[file.tree]:
            made = list(file.origins.of(node))
            if len(made) == 1 and _makes_generator(file, made[0]):
                yield made[0], node.id


def _makes_generator(file: FileModel, value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "manual_seed":
        value = value.func.value
    return isinstance(value, ast.Call) and file.qualified(value.func) in _GENERATORS


def _is_remade(file: FileModel, name: str, made: ast.expr) -> bool:
    """Whether a worker makes the generator anew, or seeds it: `info.dataset.rng = …`, or only when it is first needed."""
    function = file.flow.function(made)
    stores = [node for node in file.attributes(name) if isinstance(node.ctx, ast.Store)]
    seeded = [call for call in file.methods("seed", "manual_seed") if f".{name}." in ast.unparse(call.func)]
    return len(stores) > 1 or bool(seeded) or getattr(function, "name", "") != "__init__"
