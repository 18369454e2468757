"""Rule `scalar-index-to-item`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .indexing import reads_element, stripped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_LOSS_NAME = re.compile(
    r"(^|_)loss(es)?$|^loss_|_loss$|^loss[A-Z]|err[DG]?$|^err[DG]_|^err_|^(loss|cost)\w{0,2}$|^[DG]_(cost|loss)", re.IGNORECASE
)


class ScalarIndexToItem(Rule):
    """Index 0 of a tensor without dimensions, instead of `item()`.

    ## Why
    Before torch 0.4 a loss was a tensor of one element, read as `loss.data[0]`. It has no dimension since, and the
    index raises `IndexError: invalid index of a 0-dim tensor`.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    loss = F.mse_loss(torch.ones(2), torch.zeros(2))
    print(loss.data[0])
    ```
    ```python
    import torch
    import torch.nn.functional as F

    loss = F.mse_loss(torch.ones(2), torch.zeros(2))
    print(loss.item())
    ```

    ## Safety
    Safe where the tensor is proven to have no dimension: the old form always raises. Unsafe where only the name says
    that it is a loss and `.data[0]` is read: a tensor of several elements would then raise in `item()`.
    Kept where the name may be a tuple, a list, or an unreduced loss, and where a value is stored or a method follows.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html
    """

    name = "scalar-index-to-item"
    category = Category.SCALARS
    safety = Safety.SAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b"[0]")
    pattern = re.compile(rb"[\w)]\[0\](?![.\[\w])")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield reads of element 0 of 0-dim tensors."""
        for node in file.index.all(ast.Subscript):
            if not reads_element(file, node):
                continue
            base = stripped(node.value)
            safety = _safety(file, node.value, base)
            if safety is not None:
                edit = ChangeTail(file.source.span(node), file.source.span(base), ("item",))
                text = file.source.code(base)
                yield self.finding(file, node, f"`{text}` has no dimension to index: use `{text}.item()`", edit, safety=safety)


def _safety(file: FileModel, indexed: ast.expr, base: ast.expr) -> Safety | None:
    fact = file.fact(base)
    if fact is not None and fact.kind is Kind.SCALAR_TENSOR and fact.proven:
        return Safety.SAFE
    # That a name is read like a tensor doesn't say what shape it has; what it is bound to may.
    shape_is_open = isinstance(base, ast.Name) and fact is not None and fact.kind is Kind.TENSOR
    if (fact is not None and fact.proven and not shape_is_open) or not (isinstance(indexed, ast.Attribute) and indexed.attr == "data"):
        return None
    name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
    return Safety.UNSAFE if _LOSS_NAME.search(name) and file.names.imports("torch") and not _may_have_dimensions(file, base) else None


def _may_have_dimensions(file: FileModel, base: ast.expr) -> bool:
    """Whether something says that the name holds a sequence, an unreduced loss, or one value for each device."""
    if not isinstance(base, ast.Name):
        return False
    if any(_is_given_a_gradient(file, read) for read in file.kinds.reads(base.id)):
        return True
    for binding in file.names.bindings(base):
        _form, value, path = file.flow.definition(binding)
        if value is None:
            continue
        fact = file.fact(value) if not path else None
        if fact is not None and fact.kind in {Kind.SEQUENCE, Kind.OTHER, Kind.ARRAY, Kind.MODULE, Kind.TENSOR}:
            return True
        # Calling a wrapped model gathers one loss for each device.
        receiver = file.fact(value.func) if isinstance(value, ast.Call) else None
        if receiver is not None and (receiver.wrapped or (receiver.kind is Kind.MODULE and _is_unreduced(receiver.call))):
            return True
    return False


def _is_given_a_gradient(file: FileModel, read: ast.Name) -> bool:
    """`x.backward(one)`: what has no dimension needs no gradient, so that this may be a tensor of one element."""
    method = file.parent(read)
    call = file.parent(method)
    is_backward = isinstance(method, ast.Attribute) and method.attr == "backward"
    return is_backward and isinstance(call, ast.Call) and bool(call.args or any(k.arg == "gradient" for k in call.keywords))


def _is_unreduced(call: ast.Call | None) -> bool:
    return call is not None and any(k.arg in {"reduction", "reduce"} for k in call.keywords)
