"""What a checkpoint holds: the values that `torch.save` is given, alone or in containers, with the keys that lead to them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_DEPTH = 5


class Entry(NamedTuple):
    """A value that is saved, with the keys that lead to it from the outermost object; none for that object itself."""

    keys: tuple[object, ...]
    value: ast.expr


def saved_object(call: ast.Call) -> ast.expr | None:
    """What a `torch.save` is given to save."""
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "obj"), None)


def entries(file: FileModel, call: ast.Call) -> list[Entry]:
    """The values that one `torch.save` saves; those of a parameter are what the file's calls pass for it."""
    saved = saved_object(call)
    found = _entries(file, saved, (), _DEPTH) if saved is not None else ()
    return list({id(entry.value): entry for entry in found}.values())


def _entries(file: FileModel, node: ast.expr, keys: tuple[object, ...], depth: int) -> Iterator[Entry]:
    if not depth:
        return
    if isinstance(node, ast.IfExp):
        inner: list[tuple[object, ast.expr]] | None = [(None, node.body), (None, node.orelse)]
    elif isinstance(node, ast.Name):
        inner = _bound(file, node, outermost=not keys)
    else:
        inner = _parts(file, node)
    if inner is None:
        yield Entry(keys, node)
    for key, value in inner or ():
        yield from _entries(file, value, keys if key is None else (*keys, key), depth - 1)


def _parts(file: FileModel, node: ast.expr) -> list[tuple[object, ast.expr]] | None:
    """What a container that is written out holds; the key is None for what is merged into it."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return list(enumerate(node.elts))
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [(key.value if isinstance(key, ast.Constant) else key, value) for key, value in pairs]
    if isinstance(node, ast.Call) and file.qualified(node.func) in {"builtins.dict", "collections.OrderedDict"}:
        return [*((None, argument) for argument in node.args), *((k.arg, k.value) for k in node.keywords)]
    return None


def _bound(file: FileModel, name: ast.Name, *, outermost: bool) -> list[tuple[object, ast.expr]] | None:
    """What a name is bound to, if that is a container, or what the file's calls pass for it."""
    bindings = file.flow.reaching(name)
    definitions = [file.flow.definition(binding) for binding in bindings]
    if len(bindings) == 1 and definitions[0].form is Form.PARAMETER:
        passed = _passed(file, bindings[0]) if outermost else []
        return [(None, value) for value in passed] or None
    values = [d.value for d in definitions if d.form is Form.ASSIGNED and not d.path and d.value is not None]
    containers = [value for value in values if isinstance(value, ast.IfExp) or _parts(file, value) is not None]
    if not containers:
        return None
    return [*((None, value) for value in containers), *_stored(file, name)]


def _passed(file: FileModel, binding: ast.AST) -> list[ast.expr]:
    function = file.parent(binding)
    if not isinstance(function, FUNCTIONS) or not isinstance(binding, ast.arg):
        return []
    values = [file.functions.argument(call, function, binding.arg) for call in file.functions.calls_to(function)]
    return [value for value in values if value is not None]


def _stored(file: FileModel, name: ast.Name) -> Iterator[tuple[object, ast.expr]]:
    """`checkpoint["model"] = value`, for the same name."""
    for statement in file.index.all(ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and isinstance(target.value, ast.Name):
            if target.value.id == name.id and file.names.scope_of(target.value) is file.names.scope_of(name):
                yield target.slice.value, statement.value
