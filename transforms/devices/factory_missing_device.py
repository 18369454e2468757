"""Rule `factory-missing-device`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function
    from torchfix_codemods.rule import Finding

_FACTORIES = frozenset(f"torch.{name}" for name in ("zeros", "ones", "full", "empty", "arange", "eye", "linspace"))
_RANDOM = frozenset(f"torch.{name}" for name in ("rand", "randn", "randint", "randperm"))
_JOINS = frozenset(f"torch.{name}" for name in ("cat", "stack", "where", "concat", "add", "mul", "matmul", "bmm", "maximum", "minimum"))
_MOVES = frozenset({"to", "cuda", "cpu", "type_as", "type", "new"})


class FactoryMissingDevice(Rule):
    """Tensor that a forward makes on the CPU, and combines with its input on whatever device that is.

    ## Why
    `torch.zeros(…)` is on the CPU unless told otherwise; with the input on a GPU the next operation raises.

    ## Example
    ```python
    import torch
    from torch import nn


    class Positions(nn.Module):
        def forward(self, x):
            return x + torch.arange(x.size(1), dtype=x.dtype)
    ```
    ```python
    import torch
    from torch import nn


    class Positions(nn.Module):
        def forward(self, x):
            return x + torch.arange(x.size(1), dtype=x.dtype, device=x.device)
    ```

    ## Safety
    Unsafe: what raised on a GPU now runs there; on the CPU nothing changes. Only in the forward of a module, for what is
    combined with an input. Random numbers come from another generator on another device, so that they are only reported;
    lengths, indices and numbers may stay on the CPU, and are kept.

    ## References
    https://docs.pytorch.org/docs/stable/notes/cuda.html#best-practices
    """

    name = "factory-missing-device"
    category = Category.DEVICES
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b"forward")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield factories in a forward whose result meets an input."""
        for call in file.calls(*_FACTORIES, *_RANDOM):
            function = file.flow.function(call)
            if not isinstance(function, FUNCTIONS) or not _is_forward(file, function) or not _lacks_device(file, call):
                continue
            partner = _partner(file, function, call)
            if partner is None:
                continue
            if file.qualified(call.func) in _RANDOM:
                advice = f"`.to({partner}.device)` keeps the numbers, `device={partner}.device` draws others"
                yield self.finding(file, call, f"made on the CPU, and combined with `{partner}` on its device: {advice}")
            else:
                edit = AddKeyword(file.source.span(call), "device", f"{partner}.device")
                yield self.finding(file, call, f"made on the CPU, and combined with `{partner}`: make it on that device", edit)


def _is_forward(file: FileModel, function: Function) -> bool:
    owner = file.classes.owner(function)
    return function.name == "forward" and owner is not None and file.classes.is_module(owner) and not file.classes.is_framework(owner)


def _lacks_device(file: FileModel, call: ast.Call) -> bool:
    if any(k.arg in {"device", "out", None} for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    return not any(isinstance(node, ast.Attribute) and node.attr in _MOVES for node in _chain(file, call))


def _partner(file: FileModel, function: Function, call: ast.Call) -> str | None:
    """The input that the result is combined with."""
    derived = _derived(function)
    statement = file.flow.statement(call)
    uses: list[ast.expr] = [call]
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and _is_whole(file, call, statement):
        target = statement.targets[0]
        reads = [n for n in file.kinds.reads(target.id) if target in file.flow.reaching(n)]
        if any(_is_moved(file, read) for read in reads):
            return None
        uses = [*reads]
    found = [_met(file, use, derived) for use in uses]
    return next((partner for partner in found if partner), None)


def _is_whole(file: FileModel, call: ast.Call, statement: ast.Assign) -> bool:
    """Whether the assigned value is the factory, or methods of it."""
    return _outermost(file, call) is statement.value


def _chain(file: FileModel, node: ast.expr) -> list[ast.expr]:
    """An expression, and the methods and subscripts that are chained to it."""
    found = [node]
    while True:
        parent = file.parent(found[-1])
        called = isinstance(parent, ast.Call) and parent.func is found[-1]
        indexed = isinstance(parent, ast.Subscript) and parent.value is found[-1]
        if not isinstance(parent, ast.expr) or not (isinstance(parent, ast.Attribute) or called or indexed):
            return found
        found.append(parent)


def _outermost(file: FileModel, node: ast.expr) -> ast.expr:
    return _chain(file, node)[-1]


def _is_moved(file: FileModel, read: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in _MOVES for node in _chain(file, read))


def _met(file: FileModel, use: ast.expr, derived: dict[str, str]) -> str | None:
    """The input whose value meets a use: in arithmetic, a join, or a call of a part of the module."""
    node = _outermost(file, use)
    parent = file.parent(node)
    while isinstance(parent, (ast.Tuple, ast.List, ast.UnaryOp)):
        node, parent = parent, file.parent(parent)
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is node else parent.left
        return _input_of(other, derived)
    if not isinstance(parent, ast.Call) or node is parent.func:
        return None
    name = file.qualified(parent.func)
    own = isinstance(parent.func, ast.Attribute) and isinstance(parent.func.value, ast.Name) and parent.func.value.id == "self"
    if name in _JOINS or (own and not name):
        others = [a for a in parent.args if a is not node] or list(getattr(node, "elts", ()))
        return next((partner for other in others if (partner := _input_of(other, derived))), None)
    return None


def _input_of(node: ast.expr, derived: dict[str, str]) -> str | None:
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)] if _keeps_device(node) else []
    return next((derived[name] for name in names if name in derived), None)


def _derived(function: Function) -> dict[str, str]:
    """The names that hold what an input became, and which input."""
    derived = {a.arg: a.arg for a in function.args.args[1:] if _is_one_tensor(function, a.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            source = _input_of(node.value, derived) if _keeps_device(node.value) else None
            for target in node.targets if source else []:
                elements = target.elts if isinstance(target, ast.Tuple) else [target]
                derived |= {e.id: source for e in elements if isinstance(e, ast.Name) and e.id not in derived and source}
    return derived


def _is_one_tensor(function: Function, name: str) -> bool:
    """Whether an input is used as one tensor: it has a size, and is never taken apart like a list."""
    measured = False
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == name
            and isinstance(node.slice, ast.Constant)
        ):
            return False
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, ast.Name) and node.iter.id == name:
            return False
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and isinstance(node.value, ast.Name)
            and node.value.id == name
        ):
            return False
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            measured = measured or node.attr in {"size", "shape", "device", "dtype", "dim", "view", "transpose", "permute"}
    return measured


def _keeps_device(value: ast.expr) -> bool:
    """Whether a value computed from an input is where the input is: sizes and numbers aren't."""
    text = ast.unparse(value)
    return not any(word in text for word in (".size(", ".shape", ".item(", "len(", ".tolist(", "torch.zeros", "torch.ones", "torch.arange"))
