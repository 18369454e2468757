"""Rule `zero-grad-missing`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore
from torchfix_codemods.effects import CLEARS_GRADIENTS
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.flow import leaves
from torchfix_codemods.rule import Category, Rule, Safety

from .accumulation import ENGINES
from .placement import place_for_clearing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding

_CLEARS_BY_HAND = re.compile(r"\.(zero_|fill_|mul_)\([^()]*\)$")
_HOOKS = (b"register_post_accumulate_grad_hook", b"dist_autograd", b"functional_call", b"fuse_backward", b"step_and_update_lr")


class ZeroGradMissing(Rule):
    """Training loop that never clears its gradients.

    ## Why
    `backward` adds to the gradients that are there. Without `zero_grad` each step also moves along the gradients of all
    batches before.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader):
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    ```
    ```python
    import torch
    import torch.nn.functional as F


    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Safety
    Unsafe: the numbers change, which is the intent. Kept where gradients are cleared anywhere between iterations (in a
    callee, by hand, in another order), where steps are conditional on a counter, where an engine clears them itself,
    and where leaf and optimizer are new in each iteration. Only reported where it isn't clear which optimizer, or
    what a function that isn't shown does with it.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "zero-grad-missing"
    category = Category.GRADIENTS
    safety = Safety.UNSAFE
    effects = (CLEARS_GRADIENTS,)
    needles = (b"torch", b"backward", b"step")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loops (and closures) with a backward and a step, and nothing that clears gradients."""
        if any(file.names.imports(engine) for engine in ENGINES) or any(word in file.source.data for word in _HOOKS):
            return
        for loop in file.loops:
            events = list(file.training.events(loop.body, depth=0))
            backwards = [e for e in events if e.happening is Happening.BACKWARD]
            steps = [e for e in events if e.happening is Happening.STEP and not _context(e)]
            inner = {x for e in steps for x in file.flow.loops(e.node)} - set(file.flow.loops(loop)) - {loop}
            if backwards and steps and not inner and not _is_vetoed(file, loop, backwards, steps):
                yield self._loop_finding(file, loop, backwards, steps)
        yield from self._closure_findings(file)

    def _loop_finding(self, file: FileModel, loop: Loop, backwards: list[Event], steps: list[Event]) -> Finding:
        first = backwards[0].node
        names = list(dict.fromkeys(file.source.code(e.subject) for e in steps if e.subject is not None))
        reason = _unclear(file, loop, backwards, steps, names)
        if reason:
            message = f"gradients are never cleared in this loop; {reason}: call zero_grad() before the backward where it belongs"
            return self.finding(file, first, message)
        code = "\n".join(f"{name}.zero_grad()" for name in names)
        target = place_for_clearing(file, loop, first)
        message = f"gradients add up over iterations: call {', '.join(f'{n}.zero_grad()' for n in names)} before the backward"
        return self.finding(file, first, message, InsertBefore(file.source.span(target), code))

    def _closure_findings(self, file: FileModel) -> Iterator[Finding]:
        for call in file.methods("step"):
            closure = _closure(file, call)
            if closure is None or not isinstance(call.func, ast.Attribute) or not file.training.is_optimizer(call.func.value):
                continue
            events = list(file.training.events(closure.body))
            happenings = {e.happening for e in events}
            if Happening.BACKWARD not in happenings or Happening.CLEAR in happenings or _clears_by_hand(file):
                continue
            name = file.source.code(call.func.value)
            if name != ast.unparse(call.func.value) or file.names.visible(name.split(".")[0], closure) is None:
                continue
            start = closure.body[1] if ast.get_docstring(closure) and len(closure.body) > 1 else closure.body[0]
            edit = InsertBefore(file.source.span(start), f"{name}.zero_grad()")
            yield self.finding(file, start, f"the closure adds to old gradients each time it runs: call {name}.zero_grad() first", edit)


def _context(step: Event) -> bool:
    """A step with a closure has its own case; one with another argument keeps gradients elsewhere."""
    call = step.node
    return isinstance(call, ast.Call) and bool(call.args) and call.args[0] is not step.subject


def _closure(file: FileModel, call: ast.Call) -> ast.FunctionDef | None:
    if len(call.args) != 1 or not isinstance(call.args[0], ast.Name):
        return None
    bindings = file.names.bindings(call.args[0])
    return bindings[0] if len(bindings) == 1 and isinstance(bindings[0], ast.FunctionDef) else None


def _is_vetoed(file: FileModel, loop: Loop, backwards: list[Event], steps: list[Event]) -> bool:
    function = file.flow.function(loop)
    if file.roles.in_tests or file.roles.is_framework_code(function or loop):
        return True
    outermost = file.flow.loops(loop)[-1:] or [loop]
    if any(e.happening is Happening.CLEAR for e in file.training.events(outermost)) or _clears_by_hand(file):
        return True
    if any(_is_conditional(file, step, backwards, loop) for step in steps):
        return True
    if any(
        file.training.is_engine(e.origin.func.value)
        for e in backwards
        if isinstance(e.origin, ast.Call) and isinstance(e.origin.func, ast.Attribute)
    ):
        return True
    return _runs_once(loop, steps, file) or any(_is_made_inside(file, e.subject, loop) for e in steps) or _same_receiver(backwards, steps)


def _clears_by_hand(file: FileModel) -> bool:
    """Gradients are set or zeroed somewhere in the file without zero_grad: who clears what isn't known."""
    return any(
        isinstance(node.ctx, (ast.Store, ast.Del)) or _CLEARS_BY_HAND.search(file.source.code(file.flow.statement(node)).rstrip())
        for node in file.attributes("grad")
    )


def _is_conditional(file: FileModel, step: Event, backwards: list[Event], loop: Loop) -> bool:
    """A step that happens only under a condition, while each iteration runs backward: gradients are meant to add up."""
    for ancestor in file.flow.ancestors(step.node):
        if ancestor is loop:
            return False
        if isinstance(ancestor, ast.If) and not all(any(a is ancestor for a in file.flow.ancestors(b.node)) for b in backwards):
            return True
    return False


def _runs_once(loop: Loop, steps: list[Event], file: FileModel) -> bool:
    if isinstance(loop, ast.For) and ast.unparse(loop.iter) == "range(1)":
        return True
    statements = [file.flow.statement(e.node) for e in steps]
    blocks = [file.flow.place(s) for s in statements]
    return any(leaves(block) and not isinstance(block[-1], ast.Continue) for block, _ in blocks)


def _is_made_inside(file: FileModel, optimizer: ast.expr | None, loop: Loop) -> bool:
    """Whether the optimizer is new in each iteration."""
    base = optimizer
    while isinstance(base, (ast.Attribute, ast.Subscript)):
        base = base.value
    if not isinstance(base, ast.Name):
        return False
    return any(any(a is loop for a in file.flow.ancestors(b)) for b in file.names.bindings(base))


def _same_receiver(backwards: list[Event], steps: list[Event]) -> bool:
    """`engine.backward(loss); engine.step()`: the engine clears gradients itself."""
    owners = {
        ast.unparse(e.origin.func.value) for e in backwards if isinstance(e.origin, ast.Call) and isinstance(e.origin.func, ast.Attribute)
    }
    return any(e.subject is not None and ast.unparse(e.subject) in owners for e in steps)


def _unclear(file: FileModel, loop: Loop, backwards: list[Event], steps: list[Event], names: list[str]) -> str:
    """Why no fix is certain; empty when one is."""
    if len(names) > 1 and len(backwards) > 1:
        return "several optimizers share several backwards"
    for step in steps:
        if step.subject is None or not _is_known(file, step.subject):
            return f"`{names[0] if names else 'the optimizer'}` may be a wrapper that clears them itself"
    if _given_away(file, loop):
        return "a function that isn't in this file receives the model or the optimizer"
    return ""


def _is_known(file: FileModel, optimizer: ast.expr) -> bool:
    """A proven optimizer, or a parameter (attribute) of that name whose origin the file doesn't show."""
    fact = file.fact(optimizer)
    if fact is not None and fact.proven:
        return fact.kind is Kind.OPTIMIZER and not isinstance(fact.origin, ast.ClassDef)
    if isinstance(optimizer, ast.Attribute):
        definition = file.functions.class_of(optimizer.value)
        values = file.classes.values(definition, optimizer.attr) if definition else []
        return bool(values) and all(isinstance(value, ast.Name) and _is_known(file, value) for value in values)
    return isinstance(optimizer, ast.Name) and all(isinstance(b, ast.arg) for b in file.names.bindings(optimizer))


def _given_away(file: FileModel, loop: Loop) -> bool:
    """Whether a call whose code isn't shown gets the model or the optimizer: it may clear gradients."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and not file.functions.is_shown(node) and not _is_harmless(file, node):
            facts = [file.fact(argument) for argument in node.args]
            if any(f is not None and f.kind in {Kind.MODULE, Kind.OPTIMIZER} for f in facts):
                return True
    return False


def _is_harmless(file: FileModel, call: ast.Call) -> bool:
    """Functions of torch and Python, modules that are run, and steps of a scaler don't clear gradients."""
    name = file.qualified(call.func) or ""
    return name.startswith(("torch.", "builtins.", "numpy.")) or bool(file.training.at(call)) or file.fact(call.func) is not None
