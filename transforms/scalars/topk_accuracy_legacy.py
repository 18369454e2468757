"""Rule `topk-accuracy-legacy`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeMethod, ChangeTail
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .accuracies import has_no_dimension, source_call
from .indexing import reads_element, stripped
from .turned import has_no_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_ACCURACY = re.compile(r"(^|_)accuracy(_|$)")


class TopkAccuracyLegacy(Rule):
    """`view` of a transposed tensor, and index 0 of an accuracy without dimensions, as in old ImageNet scripts.

    ## Why
    The dimensions of a transposed tensor can't be merged in a view: "view size is not compatible with input tensor's
    size and stride". And since torch 0.4 the accuracy of a batch, a sum of a flat tensor, has no dimension to index.

    ## Example
    ```python
    import torch


    def accuracy(output, target, topk=(1,)):
        _, pred = output.topk(max(topk), 1)
        correct = pred.t().eq(target.view(1, -1))
        return [correct[:k].view(-1).float().sum(0) for k in topk]


    top1, top2 = accuracy(torch.eye(4), torch.arange(4), topk=(1, 2))
    print(top1[0], top2[0])
    ```
    ```python
    import torch


    def accuracy(output, target, topk=(1,)):
        _, pred = output.topk(max(topk), 1)
        correct = pred.t().eq(target.view(1, -1))
        return [correct[:k].reshape(-1).float().sum(0) for k in topk]


    top1, top2 = accuracy(torch.eye(4), torch.arange(4), topk=(1, 2))
    print(top1.item(), top2.item())
    ```

    ## Safety
    Safe: where `view` works `reshape` is the same, memory included; where it raises `reshape` copies. Views that split
    dimensions, or merge those that lie side by side in memory, work and are kept. Index 0 becomes `item()` where the
    function is seen to return values without dimensions; with `keepdim=True` it is kept, and only reported where the
    accuracy function can't be found.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.Tensor.reshape.html
    """

    name = "topk-accuracy-legacy"
    category = Category.SCALARS
    safety = Safety.SAFE
    effects = (RAISES_LESS,)
    needles = (b"torch",)
    pattern = re.compile(rb"\.view\(|[\w)\]]\[0\](?![.\[\w])")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield views that can't be, and index 0 of what an accuracy function returns."""
        span = file.source.span
        for call in file.methods("view"):
            if isinstance(call.func, ast.Attribute) and not file.qualified(call.func) and has_no_view(file, call):
                edit = ChangeMethod(span(call), span(call.func.value), "reshape")
                yield self.finding(file, call, "dimensions of a transposed tensor are merged, which no view can: use `reshape`", edit)
        for node in file.index.all(ast.Subscript):
            if reads_element(file, node):
                yield from self._element(file, node)

    def _element(self, file: FileModel, node: ast.Subscript) -> Iterator[Finding]:
        base = stripped(node.value)
        source = source_call(file, base)
        if source is None or (not source[1] and isinstance(base, ast.Call)):
            return
        text, span = file.source.code(base), file.source.span
        if has_no_dimension(file, *source):
            message = f"`{text}` has no dimension to index: use `{text}.item()`"
            yield self.finding(file, node, message, ChangeTail(span(node), span(base), ("item",)))
        elif len(source[1]) == 1 and isinstance(base, ast.Name) and _is_unknown_accuracy(file, source[0]):
            yield self.finding(file, node, f"where the accuracy has no dimension, index 0 raises: use `{text}.item()`")


def _is_unknown_accuracy(file: FileModel, call: ast.Call) -> bool:
    """Whether an imported function that isn't found has the name of an accuracy."""
    name = file.qualified(call.func) or ""
    return bool(_ACCURACY.search(name.rpartition(".")[2])) and not file.functions.is_shown(call)
