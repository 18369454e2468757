"""Where a softmax or sigmoid was applied to a value: directly, or under a name."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model import Fact, Kind
from torchfix_codemods.model.flow import Form

from .loss_calls import first_argument

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_RESHAPING = frozenset("view reshape flatten squeeze unsqueeze transpose permute contiguous view_as reshape_as t".split())
"""Methods that leave the numbers alone, so that the activation may as well come after them."""


class Activation(Enum):
    """The activations that a loss may apply itself; the value is the name of the method."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"


_FUNCTIONS = {
    Activation.SOFTMAX: frozenset({"torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax"}),
    Activation.SIGMOID: frozenset({"torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"}),
}
LAYERS = {Activation.SOFTMAX: frozenset({"torch.nn.Softmax", "torch.nn.Softmax2d"}), Activation.SIGMOID: frozenset({"torch.nn.Sigmoid"})}


class Applied(NamedTuple):
    """A call that applies an activation."""

    call: ast.Call
    logits: ast.expr
    options: ast.Call
    """The call that names the dimension: the same, or the constructor of a layer."""
    first_option: int
    """The position of the first option among its arguments."""

    def option(self, name: str, place: int) -> ast.expr | None:
        """An option by its keyword, or by its place among the options."""
        for keyword in self.options.keywords:
            if keyword.arg == name:
                return keyword.value
        position = self.first_option + place
        return self.options.args[position] if position < len(self.options.args) else None


@dataclass(frozen=True, slots=True)
class Activated:
    """A value that went through an activation."""

    applied: Applied
    core: ast.expr
    """The part of the value to put the logits for: the call of the activation, or a name that holds its result."""
    binding: ast.Name | None = None
    """Where that name got its value."""
    reshaping: tuple[ast.expr, ast.expr] | None = None
    """What the name holds is the second of these, the first being the call of the activation."""


def activated(file: FileModel, value: ast.expr, activation: Activation) -> Activated | None:
    """The activation that a value is the result of, when nothing but its shape was changed since."""
    core = unshaped(value)
    applied = applied_by(file, core, activation)
    if applied:
        return Activated(applied, core)
    binding = only_binding(file, core)
    held = file.flow.definition(binding).value if binding else None
    if binding is None or held is None:
        return None
    inner = unshaped(held)
    applied = applied_by(file, inner, activation)
    return Activated(applied, core, binding, (inner, held) if inner is not held else None) if applied else None


def applied_by(file: FileModel, node: ast.expr, activation: Activation) -> Applied | None:
    """The activation that this very call applies."""
    if not isinstance(node, ast.Call):
        return None
    name = file.qualified(node.func)
    if name is not None:
        logits = first_argument(node, "input") if name in _FUNCTIONS[activation] else None
        return Applied(node, logits, node, 1 if node.args else 0) if logits is not None else None
    layer = file.fact(node.func)
    if layer is not None and layer.kind is Kind.MODULE:
        return _by_layer(node, layer, activation)
    return _by_method(file, node, activation)


def _by_layer(call: ast.Call, layer: Fact, activation: Activation) -> Applied | None:
    logits = first_argument(call, "input")
    known = layer.proven and layer.origin in LAYERS[activation] and layer.call is not None
    return Applied(call, logits, layer.call, 0) if known and logits is not None and layer.call else None


def _by_method(file: FileModel, call: ast.Call, activation: Activation) -> Applied | None:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != activation.value or file.functions.targets(call):
        return None
    if activation is Activation.SIGMOID and (call.args or call.keywords):
        return None
    if any(literal_integer(argument) is None for argument in call.args) or (isinstance(func.value, ast.Name) and func.value.id == "self"):
        # `ops.softmax(x)` is a function of something unknown.
        return None
    unknown_function = activation is Activation.SOFTMAX and not call.args and not call.keywords
    return None if unknown_function else Applied(call, func.value, call, 0)


def only_binding(file: FileModel, node: ast.expr, *, unpacked: bool = False) -> ast.Name | None:
    """The one assignment, in the same function, that a name has its value from; None when the value was written in place since.

    With `unpacked`, the name may take one element of a tuple.
    """
    if not isinstance(node, ast.Name):
        return None
    bindings = file.flow.reaching(node)
    if len(bindings) != 1 or not isinstance(bindings[0], ast.Name) or file.flow.function(bindings[0]) is not file.flow.function(node):
        return None
    definition, statement = file.flow.definition(bindings[0]), file.flow.statement(bindings[0])
    plain = isinstance(statement, ast.AnnAssign) or (isinstance(statement, ast.Assign) and len(statement.targets) == 1)
    named = unpacked or (not definition.path and file.parent(bindings[0]) is statement)
    if definition.form is not Form.ASSIGNED or not plain or not named:
        return None
    return None if is_written(file, bindings[0], file.flow.statement(node)) else bindings[0]


def is_written(file: FileModel, name: ast.Name, until: ast.stmt) -> bool:
    """Whether a variable is written in place between a mention of it and the end of a later statement."""
    after, end = file.flow.statement(name).end_lineno or 0, until.end_lineno or 0
    mentions = [n for n in file.index.all(ast.Name) if n.id == name.id and after < n.lineno <= end]
    return any(_writes(file, mention) for mention in mentions)


def _writes(file: FileModel, name: ast.Name) -> bool:
    parent = file.parent(name)
    if isinstance(parent, ast.Subscript):
        return parent.value is name and not isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return (parent.attr.endswith("_") and not parent.attr.endswith("__")) or not isinstance(parent.ctx, ast.Load)
    return isinstance(parent, ast.keyword) and parent.arg == "out"


def unshaped(node: ast.expr) -> ast.expr:
    """A value from before its shape was changed."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RESHAPING:
        node = node.func.value
    return node


def literal_integer(node: ast.expr | None) -> int | None:
    """The integer that a literal stands for."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = literal_integer(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
