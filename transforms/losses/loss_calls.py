"""Calls of a loss: its function, or a criterion of its class; with the argument that holds the predictions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel


class Loss(NamedTuple):
    """A loss by the two names that torch gives it."""

    layer: str
    function: str


class LossCall(NamedTuple):
    """A call of a loss."""

    call: ast.Call
    prediction: ast.expr
    constructor: ast.Call | None
    """Where the criterion was made; None for a function."""


CROSS_ENTROPY = Loss("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy")
NLL = Loss("torch.nn.NLLLoss", "torch.nn.functional.nll_loss")
BINARY = Loss("torch.nn.BCELoss", "torch.nn.functional.binary_cross_entropy")
BINARY_WITH_LOGITS = Loss("torch.nn.BCEWithLogitsLoss", "torch.nn.functional.binary_cross_entropy_with_logits")


def loss_calls(file: FileModel, loss: Loss) -> Iterator[LossCall]:
    """Every call of a loss that passes its predictions openly, in source order."""
    for call in file.index.all(ast.Call):
        prediction = first_argument(call, "input")
        if prediction is None:
            continue
        name = file.qualified(call.func)
        if name == loss.function:
            yield LossCall(call, prediction, None)
        elif name is None:
            fact = file.fact(call.func)
            if fact is not None and fact.proven and fact.origin == loss.layer and fact.call is not None:
                yield LossCall(call, prediction, fact.call)


def first_argument(call: ast.Call, keyword: str) -> ast.expr | None:
    """What a call passes first, or under a keyword."""
    if call.args:
        return None if isinstance(call.args[0], ast.Starred) else call.args[0]
    return next((k.value for k in call.keywords if k.arg == keyword), None)
