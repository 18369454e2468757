"""Whether a file's models normalise over a batch alone, with one value per channel and sample."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_KEEPS_SHAPE = frozenset(f"torch.nn.{name}" for name in "ReLU LeakyReLU Tanh Sigmoid GELU ELU SiLU Dropout Identity".split())
_SEQUENCES = frozenset(f"torch.nn.{name}" for name in ("Conv1d", "ConvTranspose1d"))
_SMALL = (1, (1, 1))


def normalizes_single_values(file: FileModel) -> bool:
    """Whether a BatchNorm1d follows a linear layer, or a BatchNorm2d a pooling to one value."""
    return any(_after_linear(file, call) for call in file.calls("torch.nn.BatchNorm1d")) or any(
        _follows(file, call, "torch.nn.AdaptiveAvgPool2d") for call in file.calls("torch.nn.BatchNorm2d")
    )


def _after_linear(file: FileModel, call: ast.Call) -> bool:
    before = list(_layers_before(file, call))
    if before:
        return before[0] == "torch.nn.Linear"
    around = next((a for a in file.flow.ancestors(call) if isinstance(a, ast.ClassDef)), file.tree)
    made = {file.qualified(node.func) for node in ast.walk(around) if isinstance(node, ast.Call)}
    return "torch.nn.Linear" in made and not made & _SEQUENCES


def _follows(file: FileModel, call: ast.Call, layer: str) -> bool:
    """Whether the layer that pools to one value stands before a normalisation, in a Sequential or a list of layers."""
    return any(name == layer for name in list(_layers_before(file, call, only_pooling_to_one=True))[:2])


def _layers_before(file: FileModel, call: ast.Call, *, only_pooling_to_one: bool = False) -> Iterator[str | None]:
    """The layers before one in the same sequence, the nearest first, without those that keep the shape."""
    parent = file.parent(call)
    siblings = parent.args if isinstance(parent, ast.Call) else parent.elts if isinstance(parent, (ast.List, ast.Tuple)) else []
    for sibling in reversed(siblings[: siblings.index(call)] if call in siblings else []):
        name = file.qualified(sibling.func) if isinstance(sibling, ast.Call) else None
        pools = isinstance(sibling, ast.Call) and bool(sibling.args) and _literal(sibling.args[0]) in _SMALL
        if name not in _KEEPS_SHAPE and (pools or not only_pooling_to_one or name != "torch.nn.AdaptiveAvgPool2d"):
            yield name


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
