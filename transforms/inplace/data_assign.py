"""Rule `data-assign`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceStatement
from torchfix_codemods.model import Kind, Recording
from torchfix_codemods.rule import Category, Rule, Safety

from .graphs import is_between_forward_and_backward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class DataAssign(Rule):
    """Assignment to `.data`, which exchanges a tensor's memory behind the back of autograd.

    ## Why
    `p.data = x` makes `p` share memory with `x`, takes on its shape and dtype without a word, and is seen neither by
    autograd nor by views of the old memory. An update of values is `p.copy_(…)` under `torch.no_grad()`.

    ## Example
    ```python
    import torch


    def soft_update(target, source, tau):
        for t, s in zip(target.parameters(), source.parameters()):
            t.data = tau * s.data + (1 - tau) * t.data
    ```
    ```python
    import torch


    def soft_update(target, source, tau):
        for t, s in zip(target.parameters(), source.parameters()):
            with torch.no_grad():
                t.copy_(tau * s + (1 - tau) * t)
    ```

    ## Safety
    Unsafe: the same values, in the memory that was there, and the write is counted. Only for elementwise arithmetic that
    the tensor itself takes part in. Everything else (slices, other dtypes, memory that is shared on purpose) is
    reported.

    ## References
    https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
    """

    name = "data-assign"
    category = Category.INPLACE
    safety = Safety.UNSAFE
    needles = (b"torch", b".data")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield assignments to the `.data` of proven tensors."""
        for assignment in file.index.all(ast.Assign):
            target = assignment.targets[0]
            if len(assignment.targets) != 1 or not isinstance(target, ast.Attribute) or target.attr != "data":
                continue
            if file.kinds.is_tensor(target.value):
                yield self._finding(file, assignment, target.value)

    def _finding(self, file: FileModel, assignment: ast.Assign, tensor: ast.expr) -> Finding:
        text, value = file.source.code(tensor), file.source.code(assignment.value)
        no_grad = file.spelling("torch.no_grad", assignment)
        in_use = is_between_forward_and_backward(file, tensor, assignment)
        if not _is_update(file, assignment.value, text) or no_grad is None or "#" in value or in_use:
            advice = f"for new values write `{text}.copy_(…)` under torch.no_grad(), for another shape or dtype make a new parameter"
            return self.finding(file, assignment, f"`{text}.data = …` exchanges memory behind the back of autograd: {advice}")
        copy = f"{text}.copy_({_without_data(file, assignment.value)})"
        guarded = file.gradients.recording(assignment) is Recording.OFF
        code = copy if guarded else f"with {no_grad}():\n    {copy}"
        edits: list[Edit] = [ReplaceStatement(file.source.span(assignment), code)]
        edits += [NeedImport("torch")] if not guarded and file.lacks_torch(assignment) else []
        return self.finding(file, assignment, f"update `{text}` in place, under torch.no_grad()", *edits)


def _without_data(file: FileModel, value: ast.expr) -> str:
    """The text of a value, reading the tensors themselves; a `data` of something else keeps its name."""
    start, end = file.source.span(value)
    text = file.source.data[:end]
    for leaf in sorted(_leaves(value), key=lambda node: -file.source.span(node).start):
        node = leaf
        while isinstance(node, ast.Attribute) and node.attr in {"data", "grad"}:
            if node.attr == "data" and file.kinds.is_tensor(node.value):
                text = text[: file.source.span(node.value).end] + text[file.source.span(node).end :]
            node = node.value
    return text[start:].decode()


def _is_update(file: FileModel, value: ast.expr, text: str) -> bool:
    """Elementwise arithmetic of the tensor's own data with numbers, gradients and other tensors' data."""
    leaves = list(_leaves(value))
    own = any(ast.unparse(leaf) in {f"{text}.data", text} for leaf in leaves)
    return own and isinstance(value, ast.BinOp) and all(_is_operand(file, leaf) for leaf in leaves)


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from _leaves(node.operand)
    else:
        yield node


def _is_operand(file: FileModel, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    while isinstance(node, ast.Attribute) and node.attr in {"data", "grad"}:
        node = node.value
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    fact = file.fact(node)
    return fact is None or fact.is_tensor or fact.kind is Kind.NUMBER
