"""Rule `amp-unscale-before-clip`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore
from torchfix_codemods.rule import Category, Rule, Safety

from .clips import clips_of
from .scaled_steps import ScaledSteps, receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .clips import Clip


class AmpUnscaleBeforeClip(Rule):
    """Gradients that are clipped while they are still scaled for mixed precision; steps and backwards without the scaler.

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
    Unsafe: updates get the size that was meant. Only where the one optimizer of what is clipped is told, and where its
    step and the scaler's update are sure to follow: a second `unscale_` before an update raises. Else reported, as are
    `optimizer.step()` and `loss.backward()` beside a scaler. Libraries that unscale themselves are left alone.

    ## References
    https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
    """

    name = "amp-unscale-before-clip"
    category = Category.AMP
    safety = Safety.UNSAFE
    needles = (b"torch", b"backward", b".step(")
    pattern = re.compile(rb"scaler|\.scale\(", re.IGNORECASE)

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield clips of gradients that a scaler has scaled, and steps and backwards that pass a scaler by."""
        for region in (file.tree, *file.index.functions()):
            if not file.roles.is_framework_code(region):
                scaled = ScaledSteps(file, region.body)
                if scaled.is_used:
                    yield from self._clips(file, scaled)
                    yield from self._plain_steps(file, scaled)
                    yield from self._plain_backwards(file, scaled)

    def _clips(self, file: FileModel, scaled: ScaledSteps) -> Iterator[Finding]:
        clips = clips_of(file, scaled)
        for clip in clips:
            scaler, name = file.source.code(clip.scaler), file.source.code(clip.optimizer)
            message = f"these gradients are still scaled: call `{scaler}.unscale_({name})` before they are clipped"
            if clip.is_told and clip.can_be_unscaled(file, scaled) and _is_first(file, clip, clips):
                edit = InsertBefore(file.source.span(file.flow.statement(clip.call)), f"{scaler}.unscale_({name})")
                yield self.finding(file, clip.call, message, edit)
            elif not any(_covers(file, other, clip) for other in clips):
                yield self.finding(file, clip.call, f"{message}, once for each step")

    def _plain_steps(self, file: FileModel, scaled: ScaledSteps) -> Iterator[Finding]:
        for call, optimizer, scaler in scaled.plain_steps():
            text = f"{file.source.code(scaler)}.step({file.source.code(optimizer)})"
            yield self.finding(file, call, f"this steps by gradients that are still scaled: call `{text}` instead")

    def _plain_backwards(self, file: FileModel, scaled: ScaledSteps) -> Iterator[Finding]:
        for call, scaler in scaled.plain_backwards():
            text = f"{file.source.code(scaler)}.scale({file.source.code(receiver(call))}).backward()"
            yield self.finding(file, call, f"the scaler steps by gradients that it has not scaled: call `{text}`")


def _is_first(file: FileModel, clip: Clip, clips: list[Clip]) -> bool:
    """Whether unscaling before this clip is enough for the others of the same step."""
    others = [other for other in clips if other is not clip and other.step is clip.step]
    return all(_covers(file, clip, other) for other in others)


def _covers(file: FileModel, first: Clip, second: Clip) -> bool:
    """Whether `first` is sure to run before `second`, so that what is unscaled for the one is unscaled for the other."""
    if first is second or first.step is not second.step or first.call.lineno >= second.call.lineno:
        return False
    block, _ = file.flow.place(file.flow.statement(first.call))
    return any(statement in block for statement in (file.flow.statement(second.call), *file.flow.ancestors(second.call)))
