"""Rule `leaf-inplace-update`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, WrapInWith
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model import Recording
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.torch_api import SET_GRAD_ENABLED
from torchfix_codemods.rule import Category, Rule, Safety

from .graphs import is_between_forward_and_backward, used_before
from .writes import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_PLAIN_DECORATORS = ("builtins.", "abc.", "functools.", "typing.", "contextlib.", "torch.enable_grad")


class LeafInplaceUpdate(Rule):
    """In-place write to a leaf that requires a gradient, outside `torch.no_grad()`.

    ## Why
    Autograd can't differentiate through a leaf that was overwritten, so it raises: "a leaf Variable that requires
    grad is being used in an in-place operation". A manual update of weights belongs under `torch.no_grad()`.

    ## Example
    ```python
    import torch

    w = torch.tensor([2.0], requires_grad=True)
    for _ in range(3):
        loss = (w**2).sum()
        loss.backward()
        w -= 0.1 * w.grad
        w.grad.zero_()
    ```
    ```python
    import torch

    w = torch.tensor([2.0], requires_grad=True)
    for _ in range(3):
        loss = (w**2).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad.zero_()
    ```

    ## Safety
    Unsafe: the code raised, and now runs; that no gradient flows through the update is what it must have meant.
    Only reported between a forward and its backward, where the write would spoil the graph, and for `w = w - lr *
    w.grad`, which makes another tensor: no leaf outside of `no_grad`, and without a gradient inside. Kept where callers
    or decorators may have turned gradients off, and where code shows that it expects the error.

    ## References
    https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
    """

    name = "leaf-inplace-update"
    category = Category.INPLACE
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch",)
    pattern = re.compile(rb"requires_grad|Parameter|parameters|torch\.nn|torch import nn|params")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield runs of statements that write to leaves, and updates that bind a new tensor."""
        done: set[ast.stmt] = set()
        for statement in [*file.index.all(ast.AugAssign), *file.index.all(ast.Expr), *file.index.all(ast.Assign)]:
            root = _written_leaf(file, statement) if statement not in done else None
            if root is not None and _records(file, statement) and not _expects_error(file, statement):
                run = _run(file, statement, root)
                done |= set(run)
                yield self._finding(file, run, root)
            elif isinstance(statement, ast.Assign) and _binds_update(file, statement):
                name = ast.unparse(statement.targets[0])
                message = f"this makes a new tensor that gets no gradient: update `{name}` in place under torch.no_grad()"
                yield self.finding(file, statement, message)

    def _finding(self, file: FileModel, run: list[ast.stmt], root: ast.expr) -> Finding:
        name, no_grad = file.source.code(root), file.spelling("torch.no_grad", run[0])
        if no_grad is None or _is_in_use(file, run[0], root):
            message = f"`{name}` is a leaf that a graph needs unchanged here: write to it after backward, under torch.no_grad()"
            return self.finding(file, run[0], message)
        span = file.source.span
        edits: list[Edit] = [WrapInWith(span(run[0]), span(run[-1]), f"{no_grad}()")]
        edits += [NeedImport("torch")] if file.lacks_torch(run[0]) else []
        message = f"write to `{name}` under torch.no_grad(): autograd raises when a leaf that requires a gradient is changed in place"
        return self.finding(file, run[0], message, *edits)


def _written_leaf(file: FileModel, statement: ast.stmt) -> ast.expr | None:
    """The leaf that a statement writes to in place."""
    root = written(statement)
    return root if root is not None and file.leaves.is_leaf(root) else None


def _records(file: FileModel, statement: ast.stmt) -> bool:
    """Whether gradients are sure to be recorded, as far as the project shows."""
    if any(file.qualified(call.func) in SET_GRAD_ENABLED for call in file.calls_named("set_grad_enabled")):
        return False
    for ancestor in file.flow.ancestors(statement):
        if isinstance(ancestor, FUNCTIONS) and not all(_is_plain_decorator(file, d) for d in ancestor.decorator_list):
            return False
    return file.gradients.recording(statement, outside=True) is Recording.ON


def _is_plain_decorator(file: FileModel, decorator: ast.expr) -> bool:
    name = file.qualified(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
    return name.startswith(_PLAIN_DECORATORS)


def _expects_error(file: FileModel, statement: ast.stmt) -> bool:
    """Whether the code shows the error on purpose: a test that it is raised, or a `try` around little else."""
    for ancestor in file.flow.ancestors(statement):
        if isinstance(ancestor, ast.With) and any("raises" in ast.unparse(item.context_expr).lower() for item in ancestor.items):
            return True
        if (
            isinstance(ancestor, ast.Try) and statement in ancestor.body and ancestor.handlers and len(ancestor.body) < 3
        ):  # the write and a print
            return True
    return False


def _is_in_use(file: FileModel, statement: ast.stmt, root: ast.expr) -> bool:
    """Whether a graph may hold the value: a backward follows a use of it, or the forward of a module has used it."""
    function = file.flow.function(statement)
    in_forward = isinstance(function, FUNCTIONS) and function.name == "forward"
    if in_forward and used_before(file, root, statement, function.body):  # type: ignore[union-attr]  # just tested
        return True
    return is_between_forward_and_backward(file, root, statement)


def _run(file: FileModel, statement: ast.stmt, root: ast.expr) -> list[ast.stmt]:
    """The statement and those directly after it that write to leaves too."""
    block, index = file.flow.place(statement)
    run = [statement]
    if _is_in_use(file, statement, root) or _shares_line(file, statement):
        return run
    for following in block[index + 1 :]:
        other = _written_leaf(file, following)
        if other is None or _is_in_use(file, following, other) or _shares_line(file, following):
            break
        run.append(following)
    return run


def _shares_line(file: FileModel, statement: ast.stmt) -> bool:
    """Whether another statement stands on the same line: the edit would be refused, and with it the whole run."""
    block, index = file.flow.place(statement)
    return any(other.lineno <= statement.lineno <= (other.end_lineno or 0) for other in block[max(index - 1, 0) : index]) or any(
        other.lineno == statement.end_lineno for other in block[index + 1 : index + 2]
    )


def _binds_update(file: FileModel, statement: ast.Assign) -> bool:
    """`w = w - lr * w.grad` for a leaf `w`, unless it is told to require a gradient again."""
    target, value = statement.targets[0], statement.value
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp):
        return False
    operands = {ast.unparse(node) for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute))}
    if not isinstance(value.op, (ast.Add, ast.Sub)) or not {target.id, f"{target.id}.grad"} <= operands:
        return False
    return file.leaves.was_leaf(target) and not _is_revived(file, statement, target.id)


def _is_revived(file: FileModel, statement: ast.Assign, name: str) -> bool:
    """Whether the function tells a name to require (or to keep) a gradient after a statement."""
    function = file.flow.function(statement)
    nodes = file.attributes("requires_grad_") + file.attributes("requires_grad") + file.attributes("retain_grad")
    mine = [n for n in nodes if ast.unparse(n.value) == name and file.flow.function(n) is function]
    return any(node.lineno > statement.lineno for node in mine)
