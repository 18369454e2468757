"""What a worker runs: the dataset's methods, collate_fn and worker_init_fn, and what these need of the script."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.torch_api import LOADER

from .loaders import option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_FUNCTIONS = ("collate_fn", "worker_init_fn")


def needed_by_workers(file: FileModel, region: list[ast.stmt]) -> set[str]:
    """Names that the code of workers refers to, and that only the statements of a region bind."""
    inside = {id(node) for statement in region for node in ast.walk(statement)}
    bindings = file.index.scopes[file.tree].bindings
    moved = {name for name, nodes in bindings.items() if all(id(node) in inside for node in nodes)}
    return _referred_to(file) & moved


def _referred_to(file: FileModel) -> set[str]:
    """The names at top level that workers look up: definitions, which are sent by name, and all that these read."""
    scope = file.index.scopes[file.tree]
    names = {
        name.id for call in file.calls(LOADER) for root in _sent(file, call) for name in _names(file, root) if _is_definition(file, name)
    }
    todo = list(names)
    while todo:
        definitions = [node for node in scope.bindings[todo.pop()] if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
        read = {name.id for definition in definitions for name in _names(file, definition)} - names
        names |= read
        todo += read
    return names


def _names(file: FileModel, root: ast.AST) -> Iterator[ast.Name]:
    """The reads of names of the script's top level."""
    for node in ast.walk(root):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and file.names.scope_of(node) is file.index.scopes[file.tree]:
            yield node


def _is_definition(file: FileModel, name: ast.Name) -> bool:
    return any(isinstance(binding, (*FUNCTIONS, ast.ClassDef)) for binding in file.names.bindings(name))


def _sent(file: FileModel, call: ast.Call) -> Iterator[ast.expr]:
    """What a loader sends to its workers, and what that is made of."""
    todo = [value for name in ("dataset", *_FUNCTIONS) if (value := option(call, name)) is not None]
    seen = set(todo)
    for value in todo:
        yield value
        parts = [node for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)]
        fresh = [origin for part in parts for origin in file.origins.of(part) if origin not in seen]
        seen.update(fresh)
        todo += fresh


def cannot_be_sent(file: FileModel, loader: ast.Call) -> bool:
    """Whether a loader sends a lambda or a function of a function, neither of which can be pickled."""
    nodes = [node for value in _sent(file, loader) for node in ast.walk(value)]
    if any(isinstance(node, ast.Lambda) for node in nodes):
        return True
    given = [option(loader, name) for name in _FUNCTIONS]
    functions = [b for name in given if isinstance(name, ast.Name) for b in file.names.bindings(name) if isinstance(b, FUNCTIONS)]
    return any(file.flow.function(function) is not None for function in functions)
