"""How a function is decorated with a grad mode that its body spells already."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddDecorator, NeedImport

if TYPE_CHECKING:
    from collections.abc import Collection

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel


def decoration(file: FileModel, spelled: ast.expr, function: ast.FunctionDef, kept: Collection[str]) -> tuple[str, list[Edit]]:
    """The decorator and its edits: the mode as it is `spelled` if it is one of `kept`, else `no_grad`; empty where torch is shadowed."""
    if file.qualified(spelled) in kept and _is_bound_outside(file, spelled, function):
        code = f"{ast.unparse(spelled)}()"
        return code, [AddDecorator(file.source.span(function), code)]
    no_grad = file.spelling("torch.no_grad", function)
    if no_grad is None:
        return "", []
    needed: list[Edit] = [NeedImport("torch")] if file.lacks_torch(function) else []
    return f"{no_grad}()", [AddDecorator(file.source.span(function), f"{no_grad}()"), *needed]


def _is_bound_outside(file: FileModel, spelled: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether the name is an import above the function: its own imports come too late for a decorator."""
    root = spelled
    while isinstance(root, ast.Attribute):
        root = root.value
    bindings = file.names.bindings(root) if isinstance(root, ast.Name) else []
    return bool(bindings) and all(file.parent(file.parent(b)) is file.tree and b.lineno < function.lineno for b in bindings)  # type: ignore[attr-defined]  # bindings have places
