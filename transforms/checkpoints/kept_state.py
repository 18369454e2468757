"""Live state dicts that are kept under a name: references to parameters, where a copy may be meant."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_SHALLOW = frozenset({"builtins.dict", "collections.OrderedDict", "copy.copy"})


class Kept(NamedTuple):
    """A state that is kept."""

    value: ast.expr
    """The state, with the shallow copies around it."""
    state: ast.Call
    owner: ast.expr
    """The model in `model.state_dict()`."""
    place: ast.expr
    """What holds it: a name, an attribute, an entry, or the list that it is appended to."""
    key: object = None
    """The key that leads to it, in a dictionary that is written out."""
    appended: bool = False


def kept_states(file: FileModel) -> Iterator[Kept]:
    """The states of one file that are assigned or appended, alone or in a dictionary."""
    for call in file.methods("state_dict"):
        if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
            continue
        value = _with_shallow_copies(file, call)
        key, held = _in_dictionary(file, value)
        place, appended = _place(file, held)
        if place is not None:
            yield Kept(value, call, call.func.value, place, key, appended)


def _with_shallow_copies(file: FileModel, state: ast.expr) -> ast.expr:
    """`dict(…)`, `.copy()`, `copy.copy(…)` and `{k: v for k, v in ….items()}` share the tensors all the same."""
    parent = file.parent(state)
    if isinstance(parent, ast.Call) and parent.args == [state] and file.qualified(parent.func) in _SHALLOW:
        return _with_shallow_copies(file, parent)
    method = file.parent(parent) if isinstance(parent, ast.Attribute) else None
    if not isinstance(parent, ast.Attribute) or not isinstance(method, ast.Call) or method.func is not parent or method.args:
        return state
    if parent.attr == "copy":
        return _with_shallow_copies(file, method)
    generator = file.parent(method)
    whole = file.parent(generator) if isinstance(generator, ast.comprehension) else None
    same = isinstance(whole, ast.DictComp) and _repeats(whole, generator)
    return whole if parent.attr == "items" and same and isinstance(whole, ast.DictComp) else state


def _repeats(whole: ast.DictComp, generator: ast.AST) -> bool:
    """Whether a comprehension makes the dictionary that it reads."""
    if not isinstance(generator, ast.comprehension) or generator.ifs or len(whole.generators) != 1:
        return False
    return ast.unparse(generator.target).strip("()") == f"{ast.unparse(whole.key)}, {ast.unparse(whole.value)}"


def _in_dictionary(file: FileModel, value: ast.expr) -> tuple[object, ast.expr]:
    parent = file.parent(value)
    if not isinstance(parent, ast.Dict) or value not in parent.values:
        return None, value
    key = parent.keys[parent.values.index(value)]
    return (key.value, parent) if isinstance(key, ast.Constant) else (None, value)


def _place(file: FileModel, held: ast.expr) -> tuple[ast.expr | None, bool]:
    """What an expression is assigned or appended to."""
    parent = file.parent(held)
    if isinstance(parent, ast.AnnAssign):
        return parent.target, False
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
        return (target if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) else None), False
    if isinstance(parent, ast.Tuple):
        return _unpacked(file, parent, held), False
    appends = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "append"
    return (
        (parent.func.value, True) if appends and isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) else (None, False)
    )


def _unpacked(file: FileModel, values: ast.Tuple, held: ast.expr) -> ast.expr | None:
    """The name that takes one of several values: `best, state = score, model.state_dict()`."""
    assignment = file.parent(values)
    targets = assignment.targets[0] if isinstance(assignment, ast.Assign) and len(assignment.targets) == 1 else None
    if not isinstance(targets, ast.Tuple) or len(targets.elts) != len(values.elts) or isinstance(held, ast.Starred):
        return None
    return targets.elts[values.elts.index(held)]
