"""Calls of torch's DataLoader: their options, datasets and the loops over them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.torch_api import LOADER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last")
_MAP_STYLE = ("torch.utils.data.TensorDataset", "torchvision.datasets.")
_ITERABLE = "torch.utils.data.IterableDataset"
_DATASET = "torch.utils.data.Dataset"


def loaders(file: FileModel) -> list[ast.Call]:
    """The calls of DataLoader whose options are all shown."""
    return [call for call in file.calls(LOADER) if not is_open(call)]


def is_open(call: ast.Call) -> bool:
    """Whether a call passes options in `*args` or `**kwargs`."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def option(call: ast.Call, name: str) -> ast.expr | None:
    """The value of an option, by keyword or position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    position = _POSITIONS.index(name) if name in _POSITIONS else len(call.args)
    return call.args[position] if position < len(call.args) else None


def is_literal(node: ast.expr | None, *values: object) -> bool:
    """Whether an expression is one of some literal values."""
    return isinstance(node, ast.Constant) and any(node.value is v or (type(node.value) is type(v) and node.value == v) for v in values)


def has_no_workers(call: ast.Call) -> bool:
    """Whether the loader is sure to load in the main process."""
    workers = option(call, "num_workers")
    return workers is None or is_literal(workers, 0)


def is_iterable_style(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset is proven to be an IterableDataset."""
    return _ITERABLE in _dataset_origins(file, call)


def is_map_style(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset is proven to be read by index."""
    dataset = option(call, "dataset")
    name = _constructor(file, dataset)
    if name.startswith(_MAP_STYLE):
        return True
    origins = _dataset_origins(file, call)
    return _DATASET in origins and _ITERABLE not in origins


def _dataset_origins(file: FileModel, call: ast.Call) -> set[str]:
    dataset = option(call, "dataset")
    fact = file.fact(dataset) if dataset is not None else None
    if fact is None or not fact.proven or fact.origin is None or isinstance(fact.origin, str):
        return set()
    return set(file.classes.origins(fact.origin))


def _constructor(file: FileModel, node: ast.expr | None) -> str:
    """The dotted name of the call that made a value, through one name."""
    if isinstance(node, ast.Name):
        bindings = file.flow.reaching(node)
        node = file.flow.definition(bindings[0]).value if len(bindings) == 1 else None
    return file.qualified(node.func) or "" if isinstance(node, ast.Call) else ""


def is_in_memory(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset is tensors that are there already."""
    return _constructor(file, option(call, "dataset")) == "torch.utils.data.TensorDataset"


def loader_of(file: FileModel, node: ast.expr) -> ast.Call | None:
    """The DataLoader call behind what is iterated, through `enumerate`, `tqdm` and `iter`."""
    through = {"builtins.enumerate", "builtins.iter", "builtins.list", "tqdm.tqdm", "tqdm.auto.tqdm", "builtins.next"}
    while isinstance(node, ast.Call) and file.qualified(node.func) in through and node.args:
        node = node.args[0]
    fact = file.fact(node)
    return fact.call if fact is not None and fact.proven and fact.kind is Kind.LOADER else None


def iterations(file: FileModel) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Every place that runs over a loader, with the call that made it."""
    for loop in file.index.all(ast.For):
        loader = loader_of(file, loop.iter)
        if loader is not None:
            yield loop, loader
    for generator in file.index.all(ast.comprehension):
        loader = loader_of(file, generator.iter)
        if loader is not None:
            yield generator, loader
    for call in file.index.all(ast.Call):
        if file.qualified(call.func) in {"builtins.iter", "builtins.next", "builtins.list"} and call.args:
            loader = loader_of(file, call.args[0])
            if loader is not None:
                yield call, loader
