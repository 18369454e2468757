"""Rule `leaf-lost-after-move`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, ChangeTail, RemoveArgument, ReplaceExpression
from torchfix_codemods.effects import MAY_GIVE_GRADIENTS, MORE_STEPS, RAISES_LESS
from torchfix_codemods.model.torch_api import FACTORIES
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_DETERMINISTIC = frozenset(f"torch.{name}" for name in ("zeros", "ones", "full", "empty", "eye", "arange", "linspace"))
_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
_DTYPE = re.compile(r"\b(float|double|half|bfloat|int|long|short|uint|bool|complex)\d*\b")


class LeafLostAfterMove(Rule):
    """Leaf or parameter that is moved right after it was made, and is no leaf any more on a GPU.

    ## Why
    A move to another device is an operation: its result has a history and no gradient of its own, and a Parameter
    becomes a plain tensor that the module doesn't register. On the CPU the move does nothing, and all looks well.

    ## Example
    ```python
    import torch


    def start(device):
        return torch.zeros(3, requires_grad=True).to(device)
    ```
    ```python
    import torch


    def start(device):
        return torch.zeros(3, requires_grad=True, device=device)
    ```

    ## Safety
    Unsafe: on a GPU the optimizer now finds what it should. Random numbers are still drawn on the CPU, and stay the same.
    A move of a leaf that exists, and a change of dtype, are differentiable operations that can be meant, and are kept.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html
    """

    name = "leaf-lost-after-move"
    category = Category.DEVICES
    safety = Safety.UNSAFE
    effects = (
        RAISES_LESS,
        MORE_STEPS,
        MAY_GIVE_GRADIENTS,
    )
    needles = (b"torch",)
    pattern = re.compile(rb"requires_grad|Parameter\(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield moves of a leaf in the expression that makes it."""
        for move in file.methods("to", "cuda"):
            made = move.func.value if isinstance(move.func, ast.Attribute) else None
            if not isinstance(made, ast.Call) or not _is_device(file, move):
                continue
            name = file.qualified(made.func) or ""
            if name in _PARAMETERS and made.args:
                message = "a Parameter that is moved is no Parameter any more: move the tensor inside"
                yield self.finding(file, move, message, *_inside(file, move, made))
            elif name in FACTORIES and _flag(made) is not None:
                message = "a leaf that is moved is no leaf any more: make it on the device"
                yield self.finding(file, move, message, *_made_there(file, move, made, name))


def _is_device(file: FileModel, move: ast.Call) -> bool:
    """Whether the move names a device, and nothing else."""
    if isinstance(move.func, ast.Attribute) and move.func.attr == "cuda":
        return not move.args and not move.keywords
    if len(move.args) != 1 or move.keywords:
        return False
    text = file.qualified(move.args[0]) or file.source.code(move.args[0])
    return not _DTYPE.search(text)


def _flag(made: ast.Call) -> ast.expr | None:
    flags = [k.value for k in made.keywords if k.arg == "requires_grad"]
    return flags[0] if flags and isinstance(flags[0], ast.Constant) and flags[0].value is True else None


def _device(file: FileModel, move: ast.Call) -> str:
    return file.source.code(move.args[0]) if move.args else '"cuda"'


def _inside(file: FileModel, move: ast.Call, made: ast.Call) -> list[Edit]:
    span, tensor = file.source.span, made.args[0]
    code = file.source.code(tensor)
    receiver = code if isinstance(tensor, (ast.Call, ast.Name, ast.Attribute, ast.Subscript)) else f"({code})"
    method = f"to({_device(file, move)})" if move.args else "cuda()"
    return [ChangeTail(span(move), span(made)), ReplaceExpression(span(tensor), f"{receiver}.{method}")]


def _made_there(file: FileModel, move: ast.Call, made: ast.Call, name: str) -> list[Edit]:
    span, flag = file.source.span, _flag(made)
    assert flag is not None
    if any(k.arg in {"device", "out", None} for k in made.keywords):
        return []
    if name in _DETERMINISTIC:
        return [ChangeTail(span(move), span(made)), AddKeyword(span(made), "device", _device(file, move))]
    return [RemoveArgument(span(made), span(flag)), ChangeTail(span(move), span(move), ("requires_grad_",))]
