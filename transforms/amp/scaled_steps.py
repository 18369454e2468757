"""What one function does with a gradient scaler: where it scales, unscales, steps and updates."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.branches import exclusive
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.training import own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_METHODS = ("scale", "step", "update", "unscale_")


class ScaledSteps:
    """The calls of one function (or of a module's top level), in the order of evaluation."""

    def __init__(self, file: FileModel, body: list[ast.stmt]) -> None:
        self._file = file
        nodes = (node for statement in body for node in own_nodes(statement))
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        self._order = {call: number for number, call in enumerate(self.calls)}

    @cached_property
    def _of_scalers(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {name: [] for name in _METHODS}
        for call in self.calls:
            if (
                isinstance(call.func, ast.Attribute)
                and call.func.attr in _METHODS
                and self._file.kinds.is_kind(call.func.value, Kind.SCALER)
            ):
                found[call.func.attr].append(call)
        return found

    @property
    def is_used(self) -> bool:
        """Whether the function scales a loss, or steps through a scaler."""
        return bool(self._of_scalers["scale"] or self._of_scalers["step"])

    @property
    def steps(self) -> list[ast.Call]:
        """`scaler.step(optimizer)` of any scaler."""
        return [call for call in self._of_scalers["step"] if call.args]

    def of(self, scaler: ast.expr, method: str) -> list[ast.Call]:
        """The calls of one method of a scaler."""
        return [call for call in self._of_scalers[method] if self._is_same(receiver(call), scaler)]

    def comes_before(self, first: ast.Call, second: ast.Call) -> bool:
        """Whether one call stands before another, and both may run."""
        return self._order[first] < self._order[second] and not exclusive(self._file.flow, first, second)

    @cached_property
    def backwards(self) -> list[tuple[ast.Call, ast.Call | None]]:
        """Each backward, with the call of `scale` that gave what it differentiates."""
        found = [call for call in self.calls if isinstance(call.func, ast.Attribute) and call.func.attr == "backward"]
        return [(call, self._scale(receiver(call))) for call in found]

    def _scale(self, node: ast.expr) -> ast.Call | None:
        if isinstance(node, ast.Name):
            forms = [self._file.flow.definition(binding) for binding in self._file.flow.reaching(node)]
            value = forms[0].value if len(forms) == 1 and forms[0].form is Form.ASSIGNED and not forms[0].path else None
            node = node if value is None else value
        return next((call for call in self._of_scalers["scale"] if call is node), None)

    def may_unscale(self, scaler: ast.expr, optimizer: ast.expr, start: ast.Call, end: ast.Call) -> bool:
        """Whether the gradients of an optimizer may be unscaled between two calls, here or in a function that is called."""
        between = self.calls[self._order[start] + 1 : self._order[end]]
        unscaled = [call.args[0] for call in self.of(scaler, "unscale_") if call in between and call.args]
        if any(self._file.identities.of(one) is None or self._is_same(one, optimizer) for one in unscaled):
            return True
        return any(self._is_given(scaler, call) or self._leads_to_unscaling(call) for call in between)

    def _is_given(self, scaler: ast.expr, call: ast.Call) -> bool:
        return any(self._is_same(argument, scaler) for argument in [*call.args, *(k.value for k in call.keywords)])

    def _leads_to_unscaling(self, call: ast.Call) -> bool:
        inner = (node for function in self._file.functions.targets(call) for node in ast.walk(function))
        return any(isinstance(node, ast.Attribute) and node.attr == "unscale_" for node in inner)

    def plain_steps(self) -> Iterator[tuple[ast.Call, ast.expr, ast.expr]]:
        """Steps of optimizers, without the scaler, by gradients of a scaled loss: call, optimizer and scaler."""
        for call in self.calls:
            event = next((e for e in self._file.training.at(call) if e.happening is Happening.STEP), None)
            if event is None or event.subject is None or call in self._of_scalers["step"]:
                continue
            before = [scale for backward, scale in self.backwards if self.comes_before(backward, call)]
            scale = before[-1] if before else None
            handled = [*self._of_scalers["step"], *self._of_scalers["unscale_"]]
            if scale is not None and not any(self._is_same(other.args[0], event.subject) for other in handled if other.args):
                yield call, event.subject, receiver(scale)

    def plain_backwards(self) -> Iterator[tuple[ast.Call, ast.expr]]:
        """Backwards of losses that nothing scales, before a step of a scaler: call and scaler."""
        if self._file.attributes("scale"):
            return
        for call, _ in self.backwards:
            step = next((step for step in self.steps if self.comes_before(call, step)), None)
            if step is not None and any(e.happening is Happening.BACKWARD for e in self._file.training.at(call)):
                yield call, receiver(step)

    def _is_same(self, first: ast.expr, second: ast.expr) -> bool:
        identity = self._file.identities.of(first)
        return identity is not None and identity == self._file.identities.of(second)


def receiver(call: ast.Call) -> ast.expr:
    """What a method is called on."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.value
