"""Clips of gradients between a scaled backward and the step of the scaler."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model.branches import sure_to_follow
from torchfix_codemods.model.flow import Form

from .scaled_steps import receiver

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.identity import Identity

    from .scaled_steps import ScaledSteps

_CLIPS = frozenset(f"torch.nn.utils.{name}" for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"))


class Clip(NamedTuple):
    """A clip of gradients that nothing has unscaled."""

    call: ast.Call
    step: ast.Call
    """`scaler.step(optimizer)`, the first that may be about what is clipped."""
    is_told: bool
    """Whether this is the only step that may be, as far as the file shows."""

    @property
    def scaler(self) -> ast.expr:
        return receiver(self.step)

    @property
    def optimizer(self) -> ast.expr:
        return self.step.args[0]

    def can_be_unscaled(self, file: FileModel, scaled: ScaledSteps) -> bool:
        """Whether the step and an update follow in any case, so that no gradient is unscaled twice."""
        following = set(sure_to_follow(file.flow, file.flow.statement(self.call)))
        updates = [file.flow.statement(call) for call in scaled.of(self.scaler, "update")]
        plain = all(isinstance(node, (ast.Name, ast.Attribute)) for node in (self.scaler, self.optimizer))
        unscaled = any(scaled.comes_before(self.call, call) for call in scaled.of(self.scaler, "unscale_"))
        return plain and not unscaled and file.flow.statement(self.step) in following and any(u in following for u in updates)


def clips_of(file: FileModel, scaled: ScaledSteps) -> list[Clip]:
    """The clips of scaled gradients in one function."""
    calls = [call for call in scaled.calls if file.qualified(call.func) in _CLIPS]
    return [clip for call in calls if (clip := _clip(file, scaled, call)) is not None]


def _clip(file: FileModel, scaled: ScaledSteps, call: ast.Call) -> Clip | None:
    steps = [step for step in scaled.steps if _is_open(scaled, call, step)]
    verdicts = {step: _is_of(file, call, step.args[0]) for step in steps}
    sure = [step for step, verdict in verdicts.items() if verdict]
    possible = sure or [step for step, verdict in verdicts.items() if verdict is None]
    optimizers = {ast.unparse(step.args[0]) for step in possible}
    return Clip(call, possible[0], len(optimizers) == 1) if possible else None


def _is_open(scaled: ScaledSteps, clip: ast.Call, step: ast.Call) -> bool:
    """Whether a clip stands between a scaled backward and a step, and nothing before it may have unscaled the gradients."""
    if not scaled.comes_before(clip, step):
        return False
    scaler = receiver(step)
    scales = scaled.of(scaler, "scale")
    backwards = [call for call, scale in scaled.backwards if scale in scales and scaled.comes_before(call, clip)]
    return bool(backwards) and not scaled.may_unscale(scaler, step.args[0], backwards[-1], clip)


def _is_of(file: FileModel, clip: ast.Call, optimizer: ast.expr) -> bool | None:
    """Whether an optimizer steps what is clipped; None when it can't be told."""
    given = clip.args[0] if clip.args else next((k.value for k in clip.keywords if k.arg == "parameters"), None)
    clipped = _owners(file, given)
    own = file.identities.of(optimizer)
    if own is not None and own in clipped:
        return True
    fact = file.fact(optimizer)
    arguments = [*fact.call.args, *(k.value for k in fact.call.keywords)] if fact is not None and fact.call is not None else []
    stepped = [owner for argument in arguments[:1] for owner in _owners(file, argument)]
    if not clipped or not stepped:
        return None
    return any(a.is_part_of(b) or b.is_part_of(a) for a in clipped for b in stepped)


def _owners(file: FileModel, node: ast.expr | None, depth: int = 3) -> list[Identity]:
    """The modules and optimizers whose parameters an expression gives."""
    if isinstance(node, ast.Name) and depth:
        values = [file.flow.definition(b) for b in file.flow.reaching(node)]
        return _owners(file, values[0].value, depth - 1) if len(values) == 1 and values[0].form is Form.ASSIGNED else []
    telling = {"parameters", "param_groups", "named_parameters"}
    sources = [n.value for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr in telling] if node is not None else []
    identities = [file.identities.of(source) for source in sources]
    return [identity for identity in identities if identity is not None]
