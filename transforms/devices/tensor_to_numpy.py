"""Rule `tensor-to-numpy`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_ARRAY_FUNCTIONS = ("numpy.array", "numpy.asarray")
_NOT_PLAIN = (b"bfloat16", b"conj(", b"to_sparse", b"sparse_coo", b"resolve_conj", b"resolve_neg")
_RETURNS = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor"})


class TensorToNumpy(Rule):
    """`.numpy()` on a tensor with gradient history or on a device.

    ## Why
    NumPy sees only CPU memory and knows no gradients: `numpy()` raises "Can't call numpy() on Tensor that requires
    grad" for the result of a model, and a TypeError for a tensor on a GPU.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    out = model(torch.ones(1, 2))
    print(out.numpy())
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    out = model(torch.ones(1, 2))
    print(out.detach().cpu().numpy())
    ```

    ## Safety
    Safe: the old form raises, or (for `.cpu()`, on a machine without a GPU) the call gives the same tensor, memory
    included. Kept without a proof that the value is a tensor which needs it. Only reported where the array may go
    back into a tensor in a function that runs a backward: detaching would silence the break in the graph.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html
    """

    name = "tensor-to-numpy"
    category = Category.DEVICES
    safety = Safety.SAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b"numpy")
    pattern = re.compile(rb"\.numpy\(|array\(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield conversions of tensors that need `.detach()` or `.cpu()` first."""
        for call, value in _conversions(file):
            if not file.kinds.is_tensor(value) and not _is_module_output(file, value, call):
                continue
            calls = _missing(file, value)
            if not calls or _is_unusual(file, call):
                continue
            chain = "".join(f".{name}()" for name in calls)
            text = _with_parentheses(file, value)
            if "detach" in calls and _may_come_back(file, call):
                message = f"numpy cuts `{text}` out of the graph that this function differentiates; compute with torch functions instead"
                yield self.finding(file, call, message)
                continue
            span = file.source.span(value)
            yield self.finding(file, call, f"numpy needs a CPU tensor without gradient: `{text}{chain}`", ChangeTail(span, span, calls))


def _with_parentheses(file: FileModel, value: ast.expr) -> str:
    """A value as it stands before a dot."""
    text = file.source.code(value)
    return text if isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"


def _conversions(file: FileModel) -> Iterator[tuple[ast.Call, ast.expr]]:
    for call in file.methods("numpy"):
        if not call.args and not call.keywords and isinstance(call.func, ast.Attribute):
            yield call, call.func.value
    for call in file.calls(*_ARRAY_FUNCTIONS):
        if call.args and not isinstance(call.args[0], ast.Starred):
            yield call, call.args[0]


def _is_module_output(file: FileModel, value: ast.expr, call: ast.Call) -> bool:
    """Whether `value.numpy()` is called on what a proven module returned: of all that it may be, only a tensor has the method."""
    if not isinstance(call.func, ast.Attribute) or call.func.value is not value:
        return False
    sources = [value] if isinstance(value, ast.Call) else []
    if isinstance(value, ast.Name):
        definitions = [file.flow.definition(binding) for binding in file.flow.reaching(value)]
        sources = [d.value for d in definitions if d.value is not None and not d.path and isinstance(d.value, ast.Call)]
        if len(sources) < len(definitions):
            return False
    facts = [file.fact(source.func) for source in sources if isinstance(source, ast.Call)]
    return bool(facts) and all(fact is not None and fact.proven and fact.kind is Kind.MODULE for fact in facts)


def _missing(file: FileModel, value: ast.expr) -> tuple[str, ...]:
    present = {node.attr for node in _chain(value)}
    if file.gradients.tracked(value) is True:
        return tuple(name for name in ("detach", "cpu") if name not in present)
    return ("cpu",) if file.devices.moved(value) else ()


def _chain(node: ast.expr) -> Iterator[ast.Attribute]:
    """The attributes of a method chain, from its end."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Attribute):
            yield node
        node = node.func if isinstance(node, ast.Call) else node.value


def _is_unusual(file: FileModel, call: ast.Call) -> bool:
    """bfloat16, conjugated and sparse tensors need more than detach and cpu."""
    region = file.flow.function(call) or file.tree
    text = file.source.data if isinstance(region, ast.Module) else file.source.code(region).encode()  # type: ignore[arg-type]  # a function
    return any(word in text for word in _NOT_PLAIN)


def _may_come_back(file: FileModel, call: ast.Call) -> bool:
    region = file.flow.function(call) or file.tree
    nodes = list(ast.walk(region))
    backward = any(e.happening is Happening.BACKWARD for node in nodes for e in file.training.at(node))
    return backward and any(
        isinstance(n, ast.Call) and file.qualified(n.func) in _RETURNS and _mentions_result(file, call, n) for n in nodes
    )


def _mentions_result(file: FileModel, call: ast.Call, rebuilt: ast.Call) -> bool:
    """Whether the array (or the name it is assigned to) is an argument of a call that makes a tensor again."""
    statement = file.flow.statement(call)
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)} if isinstance(statement, ast.Assign) else set()
    inside = [node for argument in rebuilt.args for node in ast.walk(argument)]
    return any(node is call or (isinstance(node, ast.Name) and node.id in names) for node in inside)
