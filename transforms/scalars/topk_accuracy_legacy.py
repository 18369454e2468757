"""Rule `topk-accuracy-legacy`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeMethod, ChangeTail
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function
    from torchfix_codemods.rule import Finding

_TURNS = frozenset({"t", "transpose", "permute", "swapaxes", "movedim"})
_KEEPS_STRIDES = frozenset("eq ne gt ge lt le float double long int half add sub mul div expand_as expand neg abs clone".split()) - {
    "clone"
}


class TopkAccuracyLegacy(Rule):
    """`view` of a transposed tensor, and index 0 of an accuracy without dimensions, as in old ImageNet scripts.

    ## Why
    A transposed tensor has no contiguous view: "view size is not compatible with input tensor's size and stride". And
    since torch 0.5 the accuracy of a batch has no dimension to index.

    ## Example
    ```python
    import torch

    x = torch.randn(2, 3, 4)
    flat = x.transpose(1, 2).view(2, -1)
    ```
    ```python
    import torch

    x = torch.randn(2, 3, 4)
    flat = x.transpose(1, 2).reshape(2, -1)
    ```

    ## Safety
    Safe: where `view` works `reshape` is the same, memory included; where it raises `reshape` copies. Index 0 becomes
    `item()` only where the function of the file is seen to return values without dimensions.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.Tensor.reshape.html
    """

    name = "topk-accuracy-legacy"
    category = Category.SCALARS
    safety = Safety.SAFE
    needles = (b"torch",)

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield views of turned tensors, and index 0 of what such an accuracy function returns."""
        for call in file.methods("view"):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            if receiver is not None and call.args and _are_sizes(file, call) and _is_turned(file, receiver):
                edit = ChangeMethod(file.source.span(call), file.source.span(receiver), "reshape")
                yield self.finding(file, call, "a transposed tensor has no such view: use reshape", edit)
        for subscript in file.index.all(ast.Subscript):
            if isinstance(subscript.slice, ast.Constant) and subscript.slice.value == 0 and isinstance(subscript.value, ast.Name):
                if isinstance(subscript.ctx, ast.Load) and _is_accuracy(file, subscript.value):
                    span = file.source.span
                    tail = ChangeTail(span(subscript), span(subscript.value), ("item",))
                    message = f"`{subscript.value.id}` has no dimension to index: use `{subscript.value.id}.item()`"
                    yield self.finding(file, subscript, message, tail)


def _are_sizes(file: FileModel, call: ast.Call) -> bool:
    """Whether the arguments are sizes, and not a dtype, which reshape doesn't take."""
    return not call.keywords and not any((file.qualified(a) or "").startswith("torch.") or isinstance(a, ast.Starred) for a in call.args)


def _is_turned(file: FileModel, node: ast.expr, depth: int = 8) -> bool:
    """Whether a tensor's memory is in another order than its dimensions, by how it was made."""
    if not depth:
        return False
    if isinstance(node, ast.Subscript):
        return _is_turned(file, node.value, depth - 1)
    if isinstance(node, ast.Attribute):
        return node.attr in {"T", "mT"} and not file.qualified(node)
    if isinstance(node, ast.Compare):
        return _is_turned(file, node.left, depth - 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not file.qualified(node.func):
        if node.func.attr in _TURNS:
            fact = file.fact(node.func.value)
            return fact is None or fact.is_tensor
        return node.func.attr in _KEEPS_STRIDES and _is_turned(file, node.func.value, depth - 1)
    if isinstance(node, ast.Name):
        bindings = file.flow.reaching(node)
        form, value, path = file.flow.definition(bindings[0]) if len(bindings) == 1 else (None, None, ())
        return form is Form.ASSIGNED and value is not None and not path and _is_turned(file, value, depth - 1)
    return False


def _is_accuracy(file: FileModel, name: ast.Name) -> bool:
    """Whether a name is one of the values that an accuracy function of the file returns in a list, without dimensions."""
    bindings = file.flow.reaching(name)
    if not bindings:
        return False
    for binding in bindings:
        form, value, path = file.flow.definition(binding)
        functions = file.functions.targets(value) if isinstance(value, ast.Call) else ()
        if form is not Form.ASSIGNED or len(path) != 1 or not functions or not all(_returns_scalars(file, f) for f in functions):
            return False
    return True


def _returns_scalars(file: FileModel, function: Function) -> bool:
    """A function that returns a list to which it appends sums of flattened tensors, scaled by numbers."""
    returns = file.functions.returns(function)
    if not returns or not all(isinstance(value, ast.Name) for value in returns) or not isinstance(function, FUNCTIONS):
        return False
    names = {value.id for value in returns if isinstance(value, ast.Name)}
    appended = [
        node.args[0]
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and node.args
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in names
    ]
    return bool(appended) and all(_is_flat_sum(file, value) for value in appended)


def _is_flat_sum(file: FileModel, node: ast.expr) -> bool:
    """`correct[:k].reshape(-1).float().sum(0)`, with `mul_(…)` and the like behind it, through one name."""
    if isinstance(node, ast.Name):
        bindings = file.flow.reaching(node)
        value = file.flow.definition(bindings[0]).value if len(bindings) == 1 else None
        return value is not None and _is_flat_sum(file, value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in {"mul_", "div_", "mul", "div", "float"}:
        return _is_flat_sum(file, node.func.value)
    sums = node.func.attr == "sum" and len(node.args) <= 1 and not node.keywords
    return sums and _is_flat(node.func.value)


def _is_flat(node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in {"view", "reshape"}:
            return [ast.unparse(a) for a in node.args] == ["-1"]
        if node.func.attr not in {"float", "double", "contiguous"}:
            return node.func.attr == "flatten" and not node.args
        node = node.func.value
    return False
