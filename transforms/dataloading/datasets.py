"""What the dataset of a DataLoader is: read by index or a stream, held in memory or not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form

from .loaders import option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.facts import Origin

ITERABLE = "torch.utils.data.IterableDataset"
DATASET = "torch.utils.data.Dataset"
TENSORS = "torch.utils.data.TensorDataset"
_PARTS = frozenset({"torch.utils.data.random_split", "torch.utils.data.Subset", "torch.utils.data.ConcatDataset"})


def dataset_values(file: FileModel, node: ast.expr | None) -> Iterator[ast.expr]:
    """The expressions that make a dataset; for a part of another dataset (or several in one) that other one."""
    for value in file.origins.of(node) or _split(file, node):
        if isinstance(value, ast.Call) and file.qualified(value.func) in _PARTS and value.args:
            inner = value.args[0].elts if isinstance(value.args[0], (ast.List, ast.Tuple)) else value.args[:1]
            for part in inner:
                yield from dataset_values(file, part)
        else:
            yield value


def _split(file: FileModel, node: ast.expr | None) -> list[ast.expr]:
    """`train, val = random_split(…)`: what is unpacked comes from the call."""
    if not isinstance(node, ast.Name):
        return []
    definitions = [file.flow.definition(binding) for binding in file.flow.reaching(node)]
    calls = [d.value for d in definitions if d.form is Form.ASSIGNED and d.path and isinstance(d.value, ast.Call)]
    known = [call for call in calls if file.qualified(call.func) in _PARTS]
    return list(known) if len(known) == len(definitions) else []


def origin_of(file: FileModel, value: ast.expr) -> Origin:
    """The class of a dataset, where it is proven."""
    fact = file.fact(value)
    return fact.origin if fact is not None and fact.proven else None


def is_iterable_style(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset is proven to be an IterableDataset."""
    dataset = option(call, "dataset")
    origins = [dataset, *dataset_values(file, dataset)] if dataset is not None else []
    return any(ITERABLE in set(file.classes.origins(origin_of(file, value))) for value in origins)


def is_map_style(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset is proven to be read by index."""
    values = list(dataset_values(file, option(call, "dataset")))
    return bool(values) and all(_is_read_by_index(file, value) for value in values)


def _is_read_by_index(file: FileModel, value: ast.expr) -> bool:
    name = (file.qualified(value.func) or "") if isinstance(value, ast.Call) else ""
    if name == TENSORS or (name.startswith("torchvision.datasets.") and not name.endswith(("UCF101", "HMDB51", "Kinetics"))):
        return True
    origin = origin_of(file, value)
    if origin is None or isinstance(origin, str) or ITERABLE in set(file.classes.origins(origin)):
        return False
    return DATASET in set(file.classes.origins(origin)) or file.classes.has_method(origin, "__getitem__")


def is_in_memory(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset is tensors, arrays or lists that are there already."""
    values = list(dataset_values(file, option(call, "dataset")))
    return bool(values) and all(_is_there(file, value) for value in values)


def _is_there(file: FileModel, value: ast.expr) -> bool:
    name = file.qualified(value.func) if isinstance(value, ast.Call) else None
    if name in {TENSORS, "builtins.list"} or isinstance(value, (ast.List, ast.ListComp)):
        return True
    if file.kinds.is_tensor(value) or file.kinds.is_kind(value, Kind.ARRAY):
        return True
    origin = origin_of(file, value)
    return isinstance(origin, ast.ClassDef) and _only_reads_tensors(file, origin)


def _only_reads_tensors(file: FileModel, definition: ast.ClassDef) -> bool:
    """Whether all that `__getitem__` does is `return self.x[index], self.y[index]`, of tensors."""
    getter = file.classes.method(definition, "__getitem__")
    last = getter.body[-1] if getter and len(getter.body) <= 1 + (ast.get_docstring(getter) is not None) else None
    if not isinstance(last, ast.Return) or last.value is None:
        return False
    parts = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    return all(isinstance(part, ast.Subscript) and file.kinds.is_tensor(part.value) for part in parts)


def shares_stream(file: FileModel, call: ast.Call) -> bool:
    """Whether every worker would read the same: a stream of this file that never asks which worker it is in.

    A stream of random samples is none, and a worker_init_fn may have divided it.
    """
    if b"get_worker_info" in file.source.data or option(call, "worker_init_fn") is not None:
        return False
    definitions = [origin_of(file, value) for value in dataset_values(file, option(call, "dataset"))]
    shown = [definition for definition in definitions if isinstance(definition, ast.ClassDef)]
    return bool(shown) and len(shown) == len(definitions) and not any("rand" in ast.unparse(definition) for definition in shown)
