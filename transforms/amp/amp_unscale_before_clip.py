"""Rule `amp-unscale-before-clip`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_CLIPS = frozenset(f"torch.nn.utils.{name}" for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"))


class AmpUnscaleBeforeClip(Rule):
    """Gradients that are clipped while they are still scaled for mixed precision.

    ## Why
    The scaler multiplies the loss, and so the gradients, by thousands. A limit that is meant for gradients cuts scaled
    ones to nothing: updates become smaller by the factor of the scale.

    ## Example
    ```python
    import torch


    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss, scaler: torch.amp.GradScaler):
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    ```
    ```python
    import torch


    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss, scaler: torch.amp.GradScaler):
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    ```

    ## Safety
    Unsafe: updates get the size that was meant. Only between a scaled backward and the step of the one optimizer, both
    in a straight line with the clip; reported where several optimizers share the scaler. Libraries that unscale
    themselves are left alone.

    ## References
    https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
    """

    name = "amp-unscale-before-clip"
    category = Category.AMP
    safety = Safety.UNSAFE
    needles = (b"torch", b"clip_grad_", b".scale(", b"backward")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield clips of gradients that a scaler has scaled, and not unscaled."""
        for clip in file.calls(*_CLIPS):
            function = file.flow.function(clip)
            region = function if isinstance(function, FUNCTIONS) else file.tree
            if any(isinstance(node, ast.Attribute) and node.attr == "unscale_" for node in ast.walk(region)):
                continue
            if file.roles.is_framework_code(function or file.tree) or not _is_scaled_before(region, clip):
                continue
            steps = _steps_after(file, clip)
            scaler = _scaler(file, steps[0]) if steps else None
            if scaler is not None:
                yield self._finding(file, clip, scaler, steps)

    def _finding(self, file: FileModel, clip: ast.Call, scaler: str, steps: list[ast.Call]) -> Finding:
        optimizer = steps[0].args[0]
        name = file.source.code(optimizer)
        message = f"these gradients are still scaled: call `{scaler}.unscale_({name})` before"
        several = len({ast.unparse(step.args[0]) for step in steps}) > 1
        if several or not _clips_what_steps(file, clip, optimizer):
            return self.finding(file, clip, f"{message}, with the optimizer whose gradients are clipped")
        edit = InsertBefore(file.source.span(file.flow.statement(clip)), f"{scaler}.unscale_({name})")
        return self.finding(file, clip, message, edit)


def _is_scaled_before(region: ast.AST, clip: ast.Call) -> bool:
    """Whether `scaler.scale(loss).backward()` stands before the clip."""
    for node in ast.walk(region):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "backward"
            and node.lineno < clip.lineno
        ):
            owner = node.func.value
            if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and owner.func.attr == "scale":
                return True
    return False


def _steps_after(file: FileModel, clip: ast.Call) -> list[ast.Call]:
    """The steps of a scaler that follow in the block of the clip, or in the one around it."""
    statement: ast.AST = file.flow.statement(clip)
    while isinstance(statement, ast.stmt) and not isinstance(statement, FUNCTIONS):
        block, index = file.flow.place(statement)
        following = [s.value for s in block[index + 1 :] if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
        steps = [call for call in following if _scaler(file, call) is not None]
        updates = [call for call in following if isinstance(call.func, ast.Attribute) and call.func.attr == "update"]
        if steps:
            return steps if updates else []
        statement = file.parent(statement)
        if isinstance(statement, (ast.For, ast.While)):
            return []
    return []


def _scaler(file: FileModel, call: ast.Call) -> str | None:
    """The scaler in `scaler.step(optimizer)`, when it is proven to be one."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step" or len(call.args) != 1:
        return None
    fact = file.fact(call.func.value)
    return file.source.code(call.func.value) if fact is not None and fact.proven and fact.kind is Kind.SCALER else None


def _clips_what_steps(file: FileModel, clip: ast.Call, optimizer: ast.expr) -> bool:
    """Whether the clipped parameters are those of the optimizer, as far as the file shows."""
    given = clip.args[0] if clip.args else None
    is_parameters = isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters"
    if not is_parameters or not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
        return False
    root = file.optimized(optimizer)
    others = {
        ast.unparse(e.subject)
        for call in file.methods("step")
        for e in file.training.at(call)
        if e.happening is Happening.STEP and e.subject
    }
    return root == file.identities.of(given.func.value) if root is not None else len(others) <= 1
