"""Rule `data-read-to-detach`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail
from torchfix_codemods.model import Kind
from torchfix_codemods.model.reads import Use
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_NEVER_TENSORS = frozenset("args cfg config opt hp hps self dataset ds loader batch resp response request store graph adj ps".split())
_METADATA = frozenset("shape size dim ndim numel nelement dtype device is_cuda".split())


class DataReadToDetach(Rule):
    """`.data` of a tensor in a place that only reads it.

    ## Why
    `.data` gives a tensor that autograd knows nothing of: a write through it is not counted, and gradients go wrong in
    silence. `.detach()` gives the same values and shares the version counter, so that the same mistake raises.

    ## Example
    ```python
    import torch
    from torch import nn

    layer = nn.Linear(2, 2)
    print(layer.weight.data.norm().item())
    ```
    ```python
    import torch
    from torch import nn

    layer = nn.Linear(2, 2)
    print(layer.weight.detach().norm().item())
    ```

    ## Safety
    Safe where the value is consumed at once, or held by a local name that is only read: the two can't be told apart.
    Only reported where it is written, returned, stored, or passed on. Kept where the receiver isn't proven to be a
    tensor: configurations, data sets, responses and packed sequences have a `data` too.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    name = "data-read-to-detach"
    category = Category.INPLACE
    safety = Safety.SAFE
    needles = (b"torch", b".data")
    pattern = re.compile(rb"(?<!utils)\.data\b")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield reads of `.data` of proven tensors."""
        for node in file.attributes("data"):
            if not isinstance(node.ctx, ast.Load) or not _is_tensor(file, node.value) or _belongs_elsewhere(file, node):
                continue
            use = file.reads.use(node)
            text = file.source.code(node.value)
            if _is_of_shape(file, node):
                edit = ChangeTail(file.source.span(node), file.source.span(node.value))
                yield self.finding(file, node, f"ask `{text}` itself: its data has the same shape, type and device", edit)
            elif use is Use.READ:
                edit = ChangeTail(file.source.span(node), file.source.span(node.value), ("detach",))
                yield self.finding(file, node, f"use `{text}.detach()`: the same values, and autograd notices a write", edit)
            elif use is Use.ESCAPES:
                yield self.finding(file, node, f"`{text}.data` leaves autograd's sight here; use `{text}.detach()` if it is only read")
            elif _is_kept_in_name(file, node):
                message = f"`{text}.data` is written through later, which autograd doesn't notice; work on `{text}.detach().clone()`"
                yield self.finding(file, node, message)


def _is_of_shape(file: FileModel, node: ast.Attribute) -> bool:
    """Whether nothing but the shape, type or device is asked for: `x.data.size(0)`."""
    parent = file.parent(node)
    return isinstance(parent, ast.Attribute) and parent.attr in _METADATA


def _is_tensor(file: FileModel, node: ast.expr) -> bool:
    if isinstance(node, ast.Name) and (node.id in _NEVER_TENSORS or "packed" in node.id):
        return False
    return file.qualified(node) is None and file.kinds.is_tensor(node)


def _belongs_elsewhere(file: FileModel, node: ast.Attribute) -> bool:
    """`x.data[0]` of a scalar is `scalar-index-to-item`'s; `a.data = b.data` aliases on purpose; `nn.init` has its own rule."""
    parent = file.parent(node)
    if isinstance(parent, ast.Subscript) and file.kinds.is_kind(node, Kind.SCALAR_TENSOR):
        return True
    if isinstance(parent, ast.Call) and (file.qualified(parent.func) or "").startswith("torch.nn.init."):
        return True
    if isinstance(parent, ast.Assign):
        return any(isinstance(t, ast.Attribute) and t.attr == "data" for t in parent.targets)
    return isinstance(parent, ast.Attribute) and parent.attr == "data"


def _is_kept_in_name(file: FileModel, node: ast.Attribute) -> bool:
    """Whether the write happens through a name; a write in the same expression is `data-inplace-to-no-grad`'s."""
    return isinstance(file.flow.statement(node), ast.Assign) and isinstance(file.parent(node), ast.Assign)
