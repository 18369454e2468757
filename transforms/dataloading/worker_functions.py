"""What is given to loaders as worker_init_fn, and what it seeds with."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.torch_api import LOADER

from .loaders import is_evaluation, is_literal, name_of, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function

_VARIES = re.compile(r"epoch|step|iter|round|time", re.IGNORECASE)
_TORCH_SEEDERS = frozenset({"torch.manual_seed", "torch.random.manual_seed", "torch.seed"})


class Seed(Enum):
    """What is known of a seed."""

    LONG = auto()
    """Torch's own, with all its 64 bits."""
    FIXED = auto()
    """The same in every epoch."""


@dataclass(frozen=True, slots=True)
class WorkerFunction:
    """A function that workers run first, and the loaders that it is given to."""

    function: Function | ast.Lambda
    loaders: tuple[ast.Call, ...]

    def calls(self, file: FileModel, names: frozenset[str]) -> Iterator[ast.Call]:
        """Its own calls of some functions of libraries."""
        for node in ast.walk(self.function):
            if isinstance(node, ast.Call) and file.qualified(node.func) in names:
                yield node

    def only_for_evaluation(self, file: FileModel) -> bool:
        """Whether all its loaders are for evaluation, which is best the same each time."""
        return all(is_evaluation(name_of(file, loader)) for loader in self.loaders)

    def is_called_elsewhere(self, file: FileModel) -> bool:
        """Whether the program also calls it directly, where torch's seed isn't what is meant."""
        return isinstance(self.function, FUNCTIONS) and bool(file.functions.calls_to(self.function))

    def seeds_torch(self, file: FileModel) -> bool:
        """Whether it sets torch's seed, which then says nothing new."""
        return any(True for _ in self.calls(file, _TORCH_SEEDERS))

    def seed(self, file: FileModel, seed: ast.expr) -> Seed | None:
        """What a seed is made of; None when that isn't clear."""
        parts = set(self._parts(file, seed, 3))
        if "torch" in parts:
            return Seed.LONG if parts <= {"torch", "added", "worker", "fixed"} else None
        persistent = any(is_literal(option(loader, "persistent_workers"), True) for loader in self.loaders)
        if not parts <= {"added", "worker", "fixed", "other arithmetic"} or is_literal(seed, None):
            return None
        # Persistent workers are seeded once: numbers that differ by worker then differ by epoch too.
        return None if persistent and "worker" in parts else Seed.FIXED

    def _parts(self, file: FileModel, node: ast.expr, depth: int) -> Iterator[str]:
        if isinstance(node, ast.BinOp):
            yield "added" if isinstance(node.op, ast.Add) else "other arithmetic"
            yield from (*self._parts(file, node.left, depth), *self._parts(file, node.right, depth))
        elif isinstance(node, ast.Name) and depth:
            yield from self._named(file, node, depth)
        elif isinstance(node, ast.Call) and file.qualified(node.func) == "builtins.int" and len(node.args) == 1:
            yield from self._parts(file, node.args[0], depth)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not _comes_from_call(file, node):
            yield "unknown" if _VARIES.search(ast.unparse(node)) else "fixed"
        else:
            yield _kind_of_call(file, node)

    def _named(self, file: FileModel, name: ast.Name, depth: int) -> Iterator[str]:
        if _VARIES.search(name.id):
            yield "unknown"
            return
        for binding in file.flow.reaching(name):
            form, value, path = file.flow.definition(binding)
            if form is Form.PARAMETER:
                yield "worker" if file.flow.function(binding) is self.function else "fixed"
            elif form is Form.ASSIGNED and not path and value is not None:
                yield from self._parts(file, value, depth - 1)
            else:
                yield "unknown"


def _kind_of_call(file: FileModel, node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return "fixed"
    if isinstance(node, ast.Call) and file.qualified(node.func) in {"torch.initial_seed", "torch.random.initial_seed"}:
        return "torch"
    if isinstance(node, ast.Attribute) and any(_asks_worker(file, value) for value in (node.value, *file.origins.of(node.value))):
        return {"seed": "torch", "id": "worker", "num_workers": "fixed"}.get(node.attr, "unknown")
    return "unknown"


def _asks_worker(file: FileModel, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (file.qualified(node.func) or "").endswith(".get_worker_info")


def _comes_from_call(file: FileModel, node: ast.expr) -> bool:
    """Whether a chain of attributes and indices begins with the result of a call, in the function itself."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    values = file.origins.of(node) if isinstance(node, ast.Name) else (node,)
    inside = any(isinstance(value, ast.Call) and _asks_worker(file, value) for value in values)
    return inside or not isinstance(node, ast.Name)


def worker_functions(file: FileModel) -> Iterator[WorkerFunction]:
    """What is given to loaders as worker_init_fn: functions and methods of the file, and lambdas."""
    users: dict[Function | ast.Lambda, list[ast.Call]] = {}
    for call in file.calls(LOADER):
        given = option(call, "worker_init_fn")
        for function in _functions(file, given) if given is not None else ():
            users.setdefault(function, []).append(call)
    yield from (WorkerFunction(function, tuple(calls)) for function, calls in users.items())


def _functions(file: FileModel, given: ast.expr) -> Iterator[Function | ast.Lambda]:
    if isinstance(given, ast.Call) and file.qualified(given.func) == "functools.partial" and given.args:
        given = given.args[0]
    if isinstance(given, ast.Name):
        yield from (binding for binding in file.names.bindings(given) if isinstance(binding, FUNCTIONS))
    elif isinstance(given, ast.Attribute):
        definition = file.functions.class_of(given.value)
        method = file.classes.method(definition, given.attr) if definition else None
        yield from [method] if method else []
    for value in file.origins.of(given):
        definition = file.classes.resolve(value.func) if isinstance(value, ast.Call) else None
        method = file.classes.method(definition, "__call__") if definition else None
        yield from [value] if isinstance(value, ast.Lambda) else [method] if method else []
