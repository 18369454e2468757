"""Edits that put models into eval mode for one function and give each its own mode back; shared by rules about modes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertAfter, InsertBefore, WrapInTry
from torchfix_codemods.model.training import own_nodes

if TYPE_CHECKING:
    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function


def body_after_docstring(function: Function) -> list[ast.stmt]:
    """The statements of a function without its docstring."""
    return function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body


def is_rebound(function: Function, model: ast.expr) -> bool:
    """Whether the function makes, replaces or deletes the model itself, so that its mode can't be restored at the end."""
    text = ast.unparse(model)
    names = (node for statement in function.body for node in own_nodes(statement) if isinstance(node, (ast.Name, ast.Attribute)))
    return any(
        not isinstance(node.ctx, ast.Load) and text.split(".")[: ast.unparse(node).count(".") + 1] == ast.unparse(node).split(".")
        for node in names
    )


def is_generator(function: Function) -> bool:
    """Whether the function yields: its consumer would run while the mode is switched."""
    nodes = (node for statement in function.body for node in own_nodes(statement))
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)


def flag_names(file: FileModel, function: Function, models: list[str]) -> list[str]:
    """A free local name for the mode of each model."""
    base = ["was_training"] if len(models) == 1 else [f"{model.rpartition('.')[2]}_was_training" for model in models]
    taken = file.index.scopes[function].bindings
    return [_free(name, taken) for name in base]


def _free(name: str, taken: dict[str, list[ast.AST]]) -> str:
    while name in taken:
        name += "_"
    return name


def restore_edits(file: FileModel, body: list[ast.stmt], flags: dict[str, str]) -> list[Edit]:
    """Give the models in `flags` (as written, to flag name) their modes back after `body`, the end of a function.

    Plain statements where the one way out is the end of the body; `try`/`finally` where there are others.
    """
    restore = "\n".join(f"{model}.train({flag})" for model, flag in flags.items())
    first, last = body[0], body[-1]
    span = file.source.span
    if _leaves_early(body) or (isinstance(last, ast.Return) and _calls(last, list(flags))):
        return [WrapInTry(span(first), span(last), restore)]
    if isinstance(last, ast.Return):
        return [InsertBefore(span(last), restore)]
    return [InsertAfter(span(last), restore)]


def _leaves_early(body: list[ast.stmt]) -> bool:
    """Whether anything but the last statement of the body ends the function."""
    exits = (node for statement in body for node in own_nodes(statement) if isinstance(node, (ast.Return, ast.Raise)))
    return any(node is not body[-1] for node in exits)


def _calls(statement: ast.Return, models: list[str]) -> bool:
    """Whether the returned expression runs one of the models."""
    nodes = own_nodes(statement)
    return any(isinstance(node, ast.Call) and ast.unparse(node.func).startswith(tuple(models)) for node in nodes)
