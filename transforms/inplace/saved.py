"""What autograd saves for backward: outputs and inputs of operations, as measured with torch 2.13."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_OUTPUT = frozenset(
    """
    sigmoid tanh relu exp sqrt rsqrt reciprocal expm1 exp2 tan softmax log_softmax softmin gumbel_softmax norm std prod
    amax amin logsumexp expit
    """.split()
)
"""Functions and methods that save what they return, in place (`relu_`) or not."""
_OUTPUT_LAYERS = frozenset(f"torch.nn.{name}" for name in "Sigmoid Tanh ReLU Softmax LogSoftmax Softmin Softmax2d".split())
_INPUT = frozenset({"pow", "square"})
_HOMES = frozenset({"torch", "torch.nn.functional", "torch.special", "torch.linalg"})


def keeps_output(file: FileModel, value: ast.expr) -> str | None:
    """That a value is the output which the operation that made it needs for its backward, in words; None when it is not."""
    if not isinstance(value, ast.Call):
        return None
    layer = file.fact(value.func) if file.qualified(value.func) is None else None
    if layer is not None and layer.kind is Kind.MODULE:
        saves = layer.proven and _ends_in_saving(file, layer.origin, layer.call)
    else:
        saves = (_operation(file, value) or "").rstrip("_") in _OUTPUT
    return f"the output that `{file.source.code(value.func)}`" if saves else None


def _ends_in_saving(file: FileModel, origin: object, call: ast.Call | None) -> bool:
    if origin == "torch.nn.Sequential" and call is not None and call.args:
        last = file.fact(call.args[-1])
        return last is not None and last.proven and last.origin in _OUTPUT_LAYERS
    return origin in _OUTPUT_LAYERS


def keeps_input(file: FileModel, read: ast.Name) -> str | None:
    """That a value is the input which the operation that reads it here needs for its backward, in words; None when it is not."""
    parent = file.parent(read)
    if isinstance(parent, ast.BinOp):
        return f"the input that `{file.source.code(parent)}`" if isinstance(parent.op, ast.Pow) and parent.left is read else None
    call = file.parent(parent) if isinstance(parent, ast.Attribute) else parent
    if not isinstance(call, ast.Call) or (call is parent and call.args[:1] != [read]) or (call is not parent and call.func is not parent):
        return None
    return f"the input that `{file.source.code(call)}`" if _operation(file, call) in _INPUT else None


def _operation(file: FileModel, call: ast.Call) -> str | None:
    """The name of a function of torch, or of a method of a tensor."""
    qualified = file.qualified(call.func)
    if qualified is not None:
        home, _, name = qualified.rpartition(".")
        return name if home in _HOMES else None
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method.rstrip("_") not in _OUTPUT | _INPUT or file.functions.targets(call):
        return None
    owner: ast.expr = call.func.value  # type: ignore[attr-defined]  # it has a method
    return method if file.kinds.is_tensor(owner) or file.gradients.tracked(owner) is True else None
