"""Rule `zero-grad-none`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceStatement
from torchfix_codemods.model import Happening
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

from .resets import resets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class ZeroGradNone(Rule):
    """Gradients that are read where there are none: after `zero_grad`, or before the first backward.

    ## Why
    Since torch 2.0 `zero_grad` sets gradients to None. Code from before that reads `p.grad.data` after it, or zeroes
    each gradient by hand, raises an AttributeError.

    ## Example
    ```python
    import torch


    def clear(model: torch.nn.Module):
        for p in model.parameters():
            p.grad.data.zero_()
    ```
    ```python
    import torch


    def clear(model: torch.nn.Module):
        model.zero_grad()
    ```

    ## Safety
    Unsafe: gradients become None where they were zero. Only for loops over all parameters of a module that do nothing
    else; a read of a gradient between `zero_grad` and the next backward is reported.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "zero-grad-none"
    category = Category.GRADIENTS
    safety = Safety.UNSAFE
    needles = (b"torch", b".grad")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield unguarded loops that zero gradients, and reads right after `zero_grad`."""
        for reset in resets(file):
            if not reset.is_guarded:
                message = f"raises for parameters without a gradient: `{reset.code}` does not"
                yield self.finding(file, reset.loop, message, ReplaceStatement(file.source.span(reset.loop), reset.code))
        for call in file.methods("zero_grad"):
            read = _read_after(file, call) if not call.args and not call.keywords else None
            if read is not None:
                message = f"`{file.source.code(read)}` is None here since torch 2.0: zero_grad() has just removed it"
                yield self.finding(file, read, f"{message}; read it before, or use zero_grad(set_to_none=False)")


def _read_after(file: FileModel, call: ast.Call) -> ast.Attribute | None:
    """The first use of a gradient in the straight line after a `zero_grad`, before anything computes one."""
    statement = file.parent(call)
    if not isinstance(statement, ast.Expr) or not any(e.happening is Happening.CLEAR for e in file.training.at(call)):
        return None
    block, index = file.flow.place(statement)
    for following in block[index + 1 :]:
        if not isinstance(following, (ast.Expr, ast.Assign, ast.AugAssign)) or _computes_gradients(file, following):
            return None
        for node in own_nodes(following):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(file.parent(node), ast.Attribute):
                return node if _is_parameter_of(file, node, call) else None
    return None


def _computes_gradients(file: FileModel, statement: ast.stmt) -> bool:
    """A backward, or a call of which nobody knows what it does."""
    if any(e.happening in {Happening.BACKWARD, Happening.STEP} for e in file.training.events([statement])):
        return True
    calls = [node for node in own_nodes(statement) if isinstance(node, ast.Call)]
    return any("closure" in ast.unparse(c) or (file.qualified(c.func) or "").startswith("torch.autograd") for c in calls)


def _is_parameter_of(file: FileModel, node: ast.Attribute, call: ast.Call) -> bool:
    """Whether a gradient is that of a parameter of the module that was cleared, or that the cleared optimizer steps."""
    assert isinstance(call.func, ast.Attribute)
    cleared = file.identities.of(call.func.value)
    root = file.optimized(call.func.value) or cleared
    owner = file.identities.of(node.value)
    if root is None or not isinstance(node.value, ast.Name):
        return root is not None and owner is not None and owner.is_part_of(root)
    values = [file.flow.definition(b).value for b in file.flow.reaching(node.value)] or [_iterated(file, node.value)]
    return any(isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and file.identities.of(v.func.value) == root for v in values)


def _iterated(file: FileModel, name: ast.Name) -> ast.expr | None:
    """What a comprehension runs over."""
    for ancestor in file.flow.ancestors(name):
        for generator in getattr(ancestor, "generators", ()):
            if isinstance(generator.target, ast.Name) and generator.target.id == name.id:
                return generator.iter  # type: ignore[no-any-return]  # a comprehension
    return None
