"""Calls of torch's DataLoader: their options, and the loops over them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import catches
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.torch_api import LOADER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_POSITIONS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
    "timeout",
    "worker_init_fn",
)
_THROUGH = frozenset({"enumerate", "iter", "list", "next", "zip"})
_ITERATING = frozenset({"iter", "list", "tuple", "next", "sum", "map"})
_FRAMEWORKS = ("lightning", "pytorch_lightning", "accelerate", "ignite", "composer", "deepspeed", "catalyst")
_EVALUATION = re.compile(r"(^|_)(val|valid|validation|test|eval|dev)|(val|test|eval)_?(set|data|loader|dl)?$", re.IGNORECASE)


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


def has_no_workers(file: FileModel, call: ast.Call) -> bool:
    """Whether the loader is sure to load in the main process."""
    workers = option(call, "num_workers")
    values = file.origins.of(workers)
    return workers is None or (bool(values) and all(is_literal(value, 0) for value in values))


def number_of_workers(file: FileModel, call: ast.Call) -> int | None:
    """How many workers a loader has, where one number is written, in the call or under one name."""
    values = file.origins.of(option(call, "num_workers"))
    number = values[0].value if len(values) == 1 and isinstance(values[0], ast.Constant) else None
    return number if type(number) is int else None


def is_expected_to_fail(file: FileModel, call: ast.Call) -> bool:
    """Whether the code around a call waits for the error that it raises."""
    for ancestor in file.flow.ancestors(call):
        if isinstance(ancestor, ast.Try) and any(catches(handler, "ValueError", "AssertionError") for handler in ancestor.handlers):
            return True
        if isinstance(ancestor, ast.With) and any("aises" in ast.unparse(item.context_expr) for item in ancestor.items):
            return True
    return False


def is_builtin(file: FileModel, function: ast.expr, names: frozenset[str]) -> bool:
    """Whether a function is one of these of Python: which `from x import *` elsewhere in the file is not taken to replace."""
    return isinstance(function, ast.Name) and function.id in names and not file.names.bindings(function)


def is_under_framework(file: FileModel, call: ast.Call) -> bool:
    """Whether a library moves the batches and tells samplers the epoch: Lightning, accelerate, a Trainer of transformers."""
    if any(file.names.imports(name) for name in _FRAMEWORKS):
        return True
    definition = file.functions.enclosing_class(call)
    if definition is not None and file.classes.is_framework(definition):
        return True
    return any(
        (file.qualified(c.func) or "").startswith("transformers.") and _last(c.func).endswith("Trainer") for c in file.index.all(ast.Call)
    )


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def name_of(file: FileModel, call: ast.Call) -> str:
    """What a loader is called: the name that it is assigned to, its key in a dictionary, or the function that returns it."""
    child: ast.AST = call
    for ancestor in file.flow.ancestors(call):
        if isinstance(ancestor, ast.Dict) and child in ancestor.values:
            key = ancestor.keys[ancestor.values.index(child)]
            return str(key.value) if isinstance(key, ast.Constant) else ""
        if isinstance(ancestor, ast.Assign):
            return _target(ancestor.targets[0], ancestor.value, call)
        if isinstance(ancestor, (ast.AnnAssign, ast.NamedExpr)):
            return _last(ancestor.target)
        if isinstance(ancestor, ast.Return) and child is call:
            return getattr(file.flow.function(call), "name", "")
        if isinstance(ancestor, (ast.stmt, ast.Call, ast.Lambda)):
            return ""
        child = ancestor
    return ""


def _target(target: ast.expr, value: ast.expr, call: ast.Call) -> str:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and call in value.elts and len(target.elts) == len(value.elts):
        return _last(target.elts[value.elts.index(call)])
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return _last(target)


def is_evaluation(name: str) -> bool:
    """Whether a loader or dataset is called one for evaluation."""
    return bool(_EVALUATION.search(name)) and "train" not in name.lower()


def loaders_of(file: FileModel, node: ast.expr, depth: int = 3) -> list[ast.Call]:
    """The DataLoader calls behind what is iterated: through `enumerate`, `zip`, progress bars, parameters and literal containers."""
    fact = file.fact(node)
    if fact is not None and fact.proven and fact.kind is Kind.LOADER and fact.call is not None:
        return [fact.call]
    if not depth:
        return []
    if isinstance(node, ast.Call):
        through = is_builtin(file, node.func, _THROUGH) or _last(node.func) == "tqdm"
        return [call for argument in node.args for call in loaders_of(file, argument, depth - 1)] if through else []
    values = _passed(file, node) or [value for value in file.origins.of(node) if value is not node]
    found = [loaders_of(file, value, depth - 1) for value in values]
    return list(dict.fromkeys(call for calls in found for call in calls)) if all(found) else []


def _passed(file: FileModel, node: ast.expr) -> list[ast.expr]:
    """What the calls in the file pass for a parameter; nothing where one of them hides it."""
    bindings = file.flow.reaching(node) if isinstance(node, ast.Name) else []
    function = file.flow.function(bindings[0]) if len(bindings) == 1 and isinstance(bindings[0], ast.arg) else None
    if not isinstance(function, FUNCTIONS) or not isinstance(node, ast.Name):
        return []
    given = [file.functions.argument(call, function, node.id) for call in file.functions.calls_to(function)]
    shown = [value for value in given if value is not None]
    return shown if len(shown) == len(given) else []


def iterations(file: FileModel) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Every place that runs over a loader, with the call that made it."""
    loops: list[ast.For | ast.comprehension] = [*file.index.all(ast.For), *file.index.all(ast.comprehension)]
    for loop in loops:
        for loader in loaders_of(file, loop.iter):
            yield loop, loader
    for generator in file.index.all(ast.YieldFrom):
        for loader in loaders_of(file, generator.value):
            yield generator, loader
    for call in file.index.all(ast.Call):
        if is_builtin(file, call.func, _ITERATING):
            for argument in call.args:
                for loader in loaders_of(file, argument):
                    yield call, loader
