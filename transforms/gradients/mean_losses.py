"""Which losses are the mean over a batch."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import torch_api as api
from torchfix_codemods.model.flow import Form

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_CRITERION_NAME = re.compile(r"criterion|loss_f|loss_func|objective", re.IGNORECASE)
_DEPTH = 4


def is_mean(file: FileModel, loss: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether a loss is a mean, or a sum of means: by its call, and by a name such as `criterion` where nothing is known."""
    if isinstance(loss, ast.Name) and depth:
        return _is_mean_name(file, loss, depth)
    if isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Add):
        return is_mean(file, loss.left, depth) and is_mean(file, loss.right, depth)
    if isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Mult):
        return any(isinstance(factor, ast.Constant) for factor in (loss.left, loss.right)) and (
            is_mean(file, loss.left, depth) or is_mean(file, loss.right, depth)
        )
    if isinstance(loss, ast.Attribute):
        return loss.attr == "loss" and _is_model_output(file, loss.value)
    return isinstance(loss, ast.Call) and _is_mean_call(file, loss, depth)


def _is_mean_name(file: FileModel, name: ast.Name, depth: int) -> bool:
    definitions = [file.flow.definition(binding) for binding in file.flow.reaching(name)]
    assigned = bool(definitions) and all(d.form is Form.ASSIGNED and not d.path for d in definitions)
    return assigned and all(d.value is not None and is_mean(file, d.value, depth - 1) for d in definitions)


def _is_mean_call(file: FileModel, call: ast.Call, depth: int) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "mean" and not call.args and not call.keywords:
        return True
    name = file.qualified(call.func)
    if name is not None:
        return name in api.LOSS_FUNCTIONS and takes_the_mean(call)
    functions = file.functions.targets(call)
    if functions:
        returned = [value for function in functions for value in file.functions.returns(function)]
        return bool(returned) and depth > 0 and all(value is not None and is_mean(file, value, depth - 1) for value in returned)
    fact = file.fact(call.func)
    if fact is not None and fact.origin is not None:
        return fact.origin in api.LOSS_LAYERS and fact.call is not None and takes_the_mean(fact.call)
    return bool(_CRITERION_NAME.search(ast.unparse(call.func)))


def takes_the_mean(call: ast.Call) -> bool:
    """Whether a loss function or criterion reduces by the mean, which is the default."""
    for keyword in call.keywords:
        is_mean_word = isinstance(keyword.value, ast.Constant) and keyword.value.value in {"mean", True}
        if keyword.arg is None or (keyword.arg in api.LOSS_OPTIONS and not is_mean_word):
            return False
    return not any(isinstance(a, ast.Starred) or (isinstance(a, ast.Constant) and a.value in {False, "none", "sum"}) for a in call.args)


def _is_model_output(file: FileModel, node: ast.expr) -> bool:
    """`model(**batch)`, or a name for it."""
    if isinstance(node, ast.Name):
        definitions = [file.flow.definition(binding) for binding in file.flow.reaching(node)]
        return len(definitions) == 1 and isinstance(definitions[0].value, ast.Call) and _is_model_output(file, definitions[0].value)
    return isinstance(node, ast.Call) and file.training.is_forward(node)
