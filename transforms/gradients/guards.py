"""How a function is decorated with a grad mode that its body spells already."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddDecorator, NeedImport
from torchfix_codemods.model.torch_api import NO_GRAD

if TYPE_CHECKING:
    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel


def decoration(file: FileModel, spelled: ast.expr, function: ast.FunctionDef) -> tuple[str, list[Edit]]:
    """The decorator `no_grad`, `spelled` as in the body where it is that, and its edits; empty where torch is shadowed.

    It serves for `inference_mode` too: whoever gets the results may use them in autograd.
    """
    if file.qualified(spelled) in NO_GRAD and _is_bound_outside(file, spelled, function):
        code = f"{ast.unparse(spelled)}()"
        return code, [AddDecorator(file.source.span(function), code)]
    no_grad = file.spelling("torch.no_grad", function)
    if no_grad is None:
        return "", []
    needed: list[Edit] = [NeedImport("torch")] if file.lacks_torch(function) else []
    return f"{no_grad}()", [AddDecorator(file.source.span(function), f"{no_grad}()"), *needed]


def _is_bound_outside(file: FileModel, spelled: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether the name is bound above the function, and around it: its own imports come too late for a decorator."""
    root = spelled
    while isinstance(root, ast.Attribute):
        root = root.value
    scope = file.names.scope_of(root) if isinstance(root, ast.Name) else None
    bindings = file.names.bindings(root) if isinstance(root, ast.Name) else []
    above = all(binding.lineno < function.lineno for binding in bindings)  # type: ignore[attr-defined]  # bindings have places
    return scope is not None and scope.node is not function and above
