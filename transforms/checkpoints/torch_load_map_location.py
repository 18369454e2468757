"""Rule `torch-load-map-location`."""

from __future__ import annotations

import ast
import re
from enum import IntEnum
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

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

    COPIED = 0
    """Goes into `load_state_dict` of a proven receiver, which copies values to where its own tensors are."""
    MAPPING = 1
    """Is a mapping of weights, on its way to a receiver that isn't proven to copy."""
    DIRECT = 2
    """Is used as it is: where its tensors are matters."""


class TorchLoadMapLocation(Rule):
    """`torch.load` that puts tensors back on the device they were saved from.

    ## Why
    A checkpoint written on a GPU does not load on a machine without one: "Attempting to deserialize object on a
    CUDA device". With one, every process first loads onto the device that wrote it. `load_state_dict` copies into
    the parameters where they are, so the CPU is the right place to load to, wherever the model lives.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("weights.pt"))
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("weights.pt", map_location="cpu"))
    ```

    ## Safety
    Safe where all that is loaded goes into `load_state_dict` of a proven module, optimizer, scheduler or scaler, or
    is a number. Unsafe where the receiver is unknown, `assign=True` is used, or a `device` of the file is filled in
    for an object that is used directly; only reported when there is no such device.
    `map_location=lambda storage, loc: storage` means the same as `"cpu"`.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """

    name = "torch-load-map-location"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    needles = (b"torch", b"load")
    pattern = re.compile(rb"\bload\b")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loads without a map location, and identity lambdas."""
        for call in file.calls("torch.load"):
            if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
                continue
            location = next((k.value for k in call.keywords if k.arg == "map_location"), call.args[1] if len(call.args) > 1 else None)
            if location is None and call.args and not _is_in_memory(file, call.args[0]) and not _has_a_branch_for_cpu(file, call):
                yield self._missing(file, call)
            elif isinstance(location, ast.Lambda) and _is_identity(location):
                message = "this lambda means map_location='cpu'; the plain form also works with mmap and weights_only"
                yield self.finding(file, call, message, ReplaceExpression(file.source.span(location), '"cpu"'))

    def _missing(self, file: FileModel, call: ast.Call) -> Finding:
        use = _use(file, call)
        span = file.source.span(call)
        message = "torch.load without map_location fails on a machine without the device that the file was saved from"
        if use is not Use.DIRECT:
            safety = Safety.SAFE if use is Use.COPIED else Safety.UNSAFE
            return self.finding(file, call, message, AddKeyword(span, "map_location", '"cpu"'), safety=safety)
        device = file.device_at(call)
        if device:
            return self.finding(file, call, message, AddKeyword(span, "map_location", device), safety=Safety.UNSAFE)
        return self.finding(file, call, f"{message}; pass map_location='cpu', or the device that the object is used on")


def _is_in_memory(file: FileModel, node: ast.expr) -> bool:
    """A round trip through a buffer of this process: everything comes back to where it was."""
    if isinstance(node, ast.Name):
        values = [file.flow.definition(b).value for b in file.names.bindings(node)]
        return any(isinstance(v, ast.Call) and file.qualified(v.func) == "io.BytesIO" for v in values)
    return isinstance(node, ast.Call) and file.qualified(node.func) == "io.BytesIO"


def _has_a_branch_for_cpu(file: FileModel, call: ast.Call) -> bool:
    """`if cuda: load(p) else: load(p, map_location=…)`: the author has thought of both machines."""
    for ancestor in file.flow.ancestors(call):
        if isinstance(ancestor, (ast.If, ast.IfExp)) and "cuda" in ast.unparse(ancestor.test):
            other = ancestor.orelse if isinstance(ancestor.orelse, list) else [ancestor.orelse]
            calls = (node for statement in other for node in ast.walk(statement) if isinstance(node, ast.Call))
            if any(keyword.arg == "map_location" for other_call in calls for keyword in other_call.keywords):
                return True
    return False


def _is_identity(node: ast.Lambda) -> bool:
    arguments = node.args.args
    plain = len(arguments) == 2 and not (node.args.vararg or node.args.kwarg or node.args.kwonlyargs)  # storage, location
    return plain and isinstance(node.body, ast.Name) and node.body.id == arguments[0].arg


def _use(file: FileModel, node: ast.expr, depth: int = 4) -> Use:
    """The worst that becomes of a loaded object (or a part of it)."""
    parent = file.parent(node)
    if isinstance(parent, ast.Call) and node in parent.args:
        return _argument_use(file, parent)
    if isinstance(parent, ast.Subscript) and node is parent.value:
        return _part_use(file, parent, parent.slice, depth)
    if isinstance(parent, ast.Attribute):
        return _method_use(file, parent, depth)
    if isinstance(parent, (ast.Compare, ast.FormattedValue, ast.Delete)):
        return Use.COPIED
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name) and depth:
        return _name_use(file, parent.targets[0], depth)
    return Use.DIRECT


def _argument_use(file: FileModel, call: ast.Call) -> Use:
    name = file.qualified(call.func)
    if name in _RNG_SETTERS or name in _INERT:
        return Use.COPIED
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
        return Use.COPIED
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and _SCALAR_KEY.search(key.value) and "optim" not in key.value:
        return Use.COPIED
    return max(_use(file, part, depth), Use.COPIED)


def _method_use(file: FileModel, attribute: ast.Attribute, depth: int) -> Use:
    call = file.parent(attribute)
    if not (isinstance(call, ast.Call) and call.func is attribute):
        return Use.DIRECT
    if attribute.attr in {"get", "pop"} and call.args:
        statement = file.parent(call)
        return Use.COPIED if isinstance(statement, ast.Expr) else _part_use(file, call, call.args[0], depth)
    return Use.MAPPING if attribute.attr in {"items", "keys", "values", "update"} else Use.DIRECT


def _name_use(file: FileModel, target: ast.Name, depth: int) -> Use:
    scope = file.names.scope_of(target)
    if scope is None or (isinstance(scope.node, ast.Module) and file.index.scopes[target] is not scope):
        return Use.DIRECT
    reads = [n for n in file.kinds.reads(target.id) if target in file.flow.reaching(n)]
    return max((_use(file, read, depth - 1) for read in reads), default=Use.DIRECT)
