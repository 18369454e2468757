"""What becomes of a loaded checkpoint."""

from __future__ import annotations

import ast
import re
from enum import IntEnum
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER}
_SCALAR_KEY = re.compile(
    r"epoch|iter|step|best|acc|loss|lr|arch|arg|config|cfg|opt$|opts|version|score|metric|prec|name|class|time|seed|rng", re.IGNORECASE
)
_RNG_SETTERS = frozenset({"torch.set_rng_state", "torch.random.set_rng_state", "torch.cuda.set_rng_state", "random.setstate"})
_INERT = frozenset(
    {"builtins.print", "builtins.isinstance", "builtins.len", "builtins.type", "builtins.int", "builtins.float", "builtins.str"}
)


class Use(IntEnum):
    """What becomes of a loaded object, from harmless to unknown."""

    READ = 0
    """Is only looked at, or gives up numbers and names."""
    COPIED = 1
    """Goes into `load_state_dict` of a proven receiver, which copies values to where its own tensors are."""
    MAPPING = 2
    """Is a mapping of weights, on its way to a receiver that isn't proven to copy."""
    DIRECT = 3
    """Is used as it is: where its tensors are matters."""


def use_of(file: FileModel, node: ast.expr, depth: int = 4) -> Use:
    """The worst that becomes of a loaded object (or a part of it)."""
    parent = file.parent(node)
    if isinstance(parent, ast.Call) and node in parent.args:
        return _argument_use(file, parent)
    if isinstance(parent, ast.Subscript) and node is parent.value:
        return _part_use(file, parent, parent.slice, depth)
    if isinstance(parent, ast.Attribute):
        return _method_use(file, parent, depth)
    if isinstance(parent, (ast.Compare, ast.FormattedValue, ast.Delete)):
        return Use.READ
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name) and depth:
        return _name_use(file, parent.targets[0], depth)
    return Use.DIRECT


def _argument_use(file: FileModel, call: ast.Call) -> Use:
    name = file.qualified(call.func)
    if name in _RNG_SETTERS or name in _INERT:
        return Use.COPIED if name in _RNG_SETTERS else Use.READ
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "load_state_dict":
        return Use.DIRECT
    if any(k.arg == "assign" for k in call.keywords):
        return Use.DIRECT
    fact = file.fact(call.func.value)
    proven = fact is not None and fact.proven and fact.kind in _STATEFUL
    overridden = proven and fact is not None and file.classes.has_method(fact.origin, "load_state_dict")
    return Use.COPIED if proven and not overridden else Use.MAPPING


def _part_use(file: FileModel, part: ast.expr, key: ast.expr, depth: int) -> Use:
    if isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del)):
        return Use.READ
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and _SCALAR_KEY.search(key.value) and "optim" not in key.value:
        return Use.READ
    return use_of(file, part, depth)


def _method_use(file: FileModel, attribute: ast.Attribute, depth: int) -> Use:
    call = file.parent(attribute)
    if not (isinstance(call, ast.Call) and call.func is attribute):
        return Use.DIRECT
    if attribute.attr in {"get", "pop"} and call.args:
        statement = file.parent(call)
        return Use.READ if isinstance(statement, ast.Expr) else _part_use(file, call, call.args[0], depth)
    return Use.MAPPING if attribute.attr in {"items", "keys", "values", "update"} else Use.DIRECT


def _name_use(file: FileModel, target: ast.Name, depth: int) -> Use:
    scope = file.names.scope_of(target)
    if scope is None or (isinstance(scope.node, ast.Module) and file.index.scopes[target] is not scope):
        return Use.DIRECT
    reads = [n for n in file.kinds.reads(target.id) if target in file.flow.reaching(n)]
    return max((use_of(file, read, depth - 1) for read in reads), default=Use.DIRECT)
