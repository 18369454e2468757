"""What the result of `load_state_dict` is taken for."""

from __future__ import annotations

import ast
from enum import Enum, auto
from typing import TYPE_CHECKING

from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

USES = frozenset(
    """
    eval train to cuda cpu parameters state_dict forward half float double named_parameters modules children module
    step zero_grad param_groups requires_grad_
    """.split()
)
"""What only a module or an optimizer is asked for."""

_KEYS = frozenset({"missing_keys", "unexpected_keys"})
_INERT = frozenset({"builtins.print", "builtins.str", "builtins.repr", "builtins.len", "builtins.type"})


class Meaning(Enum):
    """What code takes the result for."""

    KEYS = auto()
    """The keys that didn't match, or nothing at all."""
    MODEL = auto()
    """What the state was loaded into: the use raises."""
    HANDED_ON = auto()
    """What the state was loaded into, under its own name: whoever gets it will raise."""


def meaning_of(file: FileModel, call: ast.Call, depth: int = 2) -> Meaning:
    """What the result of one call is taken for where it is used, through the callers of the function that returns it."""
    parent = file.parent(call)
    if isinstance(parent, ast.Return) and depth:
        function = file.flow.function(parent)
        calls = file.functions.calls_to(function) if isinstance(function, FUNCTIONS) else []
        meanings = {meaning_of(file, caller, depth - 1) for caller in calls}
        return Meaning.MODEL if meanings == {Meaning.MODEL} else Meaning.KEYS
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = [parent.target] if isinstance(parent, ast.AnnAssign) else parent.targets
        return _assigned(file, call, targets[0]) if len(targets) == 1 else Meaning.KEYS
    if isinstance(parent, ast.Call) and (parent.func is call or _takes_modules(file, parent, call)):
        return Meaning.MODEL
    return Meaning.MODEL if isinstance(parent, ast.Attribute) and parent.attr in USES else Meaning.KEYS


def _takes_modules(file: FileModel, call: ast.Call, argument: ast.AST) -> bool:
    name = file.qualified(call.func) or ""
    return name.startswith("torch.nn.") and argument in call.args


def _assigned(file: FileModel, call: ast.Call, target: ast.expr) -> Meaning:
    own = isinstance(call.func, ast.Attribute) and ast.unparse(target) == ast.unparse(call.func.value)
    meanings = [_read(file, read) for read in _reads(file, target)]
    if Meaning.KEYS in meanings:
        return Meaning.KEYS
    if Meaning.MODEL in meanings:
        return Meaning.MODEL
    return Meaning.HANDED_ON if own and Meaning.HANDED_ON in meanings else Meaning.KEYS


def _reads(file: FileModel, target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Name):
        return [read for read in file.kinds.reads(target.id) if target in file.flow.reaching(read)]
    if not isinstance(target, ast.Attribute):
        return []
    identity = file.identities.of(target)
    alike = [node for node in file.attributes(target.attr) if isinstance(node.ctx, ast.Load)]
    return [node for node in alike if identity is not None and file.identities.of(node) == identity and not _is_earlier(file, node, target)]


def _is_earlier(file: FileModel, node: ast.expr, target: ast.expr) -> bool:
    """Whether a read of an attribute comes before the assignment, in the same function."""
    return file.flow.function(node) is file.flow.function(target) and node.lineno <= target.lineno


def _read(file: FileModel, read: ast.expr) -> Meaning | None:
    parent = file.parent(read)
    if isinstance(parent, ast.Attribute):
        return Meaning.KEYS if parent.attr in _KEYS else Meaning.MODEL if parent.attr in USES else None
    if isinstance(parent, ast.Call):
        if parent.func is read or _takes_modules(file, parent, read):
            return Meaning.MODEL
        return Meaning.KEYS if file.qualified(parent.func) in _INERT else Meaning.HANDED_ON
    if isinstance(parent, ast.Return) and isinstance(file.flow.function(parent), FUNCTIONS):
        return Meaning.HANDED_ON
    return Meaning.KEYS if isinstance(parent, (ast.Subscript, ast.Compare, ast.FormattedValue, ast.For)) else None
