"""Edits that hand a loss the value from before the activation."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.edits import InsertBefore, ReplaceExpression

from .activation import is_written, literal_integer

if TYPE_CHECKING:
    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel

    from .activation import Activated


class Logits(NamedTuple):
    """How the logits are called where the loss is, and what gives them that name."""

    code: str
    edits: tuple[Edit, ...] = ()


def logits_at_loss(file: FileModel, found: Activated) -> Logits | None:
    """The logits by their own expression or name where it still has their value, else by a new name."""
    logits = found.applied.logits
    code = file.source.code(logits)
    if found.binding is None or _is_steady(file, logits, found):
        return Logits(code)
    name = _new_name(file, found.binding.id)
    if name is None or isinstance(logits, ast.NamedExpr):
        return None
    keep = InsertBefore(file.source.span(file.flow.statement(found.binding)), f"{name} = {code}")
    # A plain name may stay in the call: it isn't evaluated twice.
    return Logits(name, (keep,) if isinstance(logits, ast.Name) else (keep, ReplaceExpression(file.source.span(logits), name)))


def _new_name(file: FileModel, name: str) -> str | None:
    new = f"raw_{name}" if "logit" in name else f"{name}_logits"
    return None if any(other.id == new for other in file.index.all(ast.Name)) else new


def pass_logits(file: FileModel, found: Activated) -> tuple[Edit, ...] | None:
    """Put the logits where the result of the activation is passed; that result keeps its name, for whoever else reads it."""
    logits, tail = logits_at_loss(file, found), _tail(file, found)
    if logits is None or tail is None:
        return None
    return (*logits.edits, ReplaceExpression(file.source.span(found.core), f"{logits.code}{tail}"))


def _tail(file: FileModel, found: Activated) -> str | None:
    """The change of shape between the activation and the name that holds its result; None when it can't be repeated."""
    if found.reshaping is None:
        return ""
    inner, node = found.reshaping
    start, end = file.source.span(inner).end, file.source.span(node).end
    while node is not inner:
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        if node.keywords or any(literal_integer(option) is None for option in node.args):
            return None
        node = node.func.value
    return file.source.data[start:end].decode()


def _is_steady(file: FileModel, logits: ast.expr, found: Activated) -> bool:
    """Whether a plain name of the logits still has their value where the loss is."""
    if not isinstance(logits, ast.Name) or found.binding is None:
        return False
    scope = file.names.scope_of(logits)
    start, end = file.flow.statement(found.binding), _last_statement(file, found)
    if scope is None or end is None or is_written(file, logits, end):
        return False
    last = end.end_lineno or 0
    return not any(start.lineno <= getattr(binding, "lineno", 0) <= last for binding in scope.bindings[logits.id])


def _last_statement(file: FileModel, found: Activated) -> ast.stmt | None:
    """The statement around the loss in the block where the activation is applied; None when it stands elsewhere."""
    assert found.binding is not None
    block, number = file.flow.place(file.flow.statement(found.binding))
    around = {file.flow.statement(found.core), *file.flow.ancestors(found.core)}
    return next((statement for statement in block[number + 1 :] if statement in around), None)
