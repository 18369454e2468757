"""Rule `eval-mode-not-restored`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore
from torchfix_codemods.effects import RUNS_IN_TRAIN_MODE
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

from .mode_leaks import leaks_in, leaks_outside
from .mode_switch import body_after_docstring, flag_names, is_generator, is_rebound, restore_edits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.index import Function
    from torchfix_codemods.rule import Finding

_MODE_BY_HAND = re.compile(r"freeze_bn|set_bn_eval|fix_bn|bn_eval|freeze_norm|train_bn", re.IGNORECASE)


class EvalModeNotRestored(Rule):
    """Function that leaves a model in eval mode in the middle of its training.

    ## Why
    `eval()` is sticky: when an evaluation inside the training loop doesn't restore the mode, everything after the first
    evaluation trains without dropout and with frozen batch statistics.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    @torch.no_grad()
    def evaluate(model: torch.nn.Module, loader):
        model.eval()
        total = 0.0
        for x, y in loader:
            total += F.mse_loss(model(x), y).item()
        return total


    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            evaluate(model, loader)
    ```
    ```python
    import torch
    import torch.nn.functional as F


    @torch.no_grad()
    def evaluate(model: torch.nn.Module, loader):
        was_training = model.training
        model.eval()
        total = 0.0
        for x, y in loader:
            total += F.mse_loss(model(x), y).item()
        model.train(was_training)
        return total


    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            evaluate(model, loader)
    ```

    ## Safety
    Unsafe: later training changes, which is the intent. Found only where a loop of the file trains the same model after
    the call without `train()` in between; the usual `train()` at the start of each epoch is right and kept. Only
    reported where submodules have modes of their own (frozen batch norm), which a restore would lose.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train
    """

    name = "eval-mode-not-restored"
    category = Category.MODES
    safety = Safety.UNSAFE
    effects = (RUNS_IN_TRAIN_MODE,)
    needles = (b"torch", b"eval()")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the `eval()` calls whose mode leaks into a later backward."""
        leaks = {event.origin: event for event in leaks_in(file) if event.elsewhere is None}
        for function in dict.fromkeys(file.flow.function(call) for call in file.methods("eval")):
            leaks |= {event.origin: event for event in leaks_outside(file, function)}
        done: set[ast.AST] = set()
        for origin in leaks:
            around = file.flow.function(origin)
            together = [leaks[o] for o in leaks if file.flow.function(o) is around]
            if around not in done and isinstance(around, FUNCTIONS):
                done.add(around)
                yield self._finding(file, around, together)

    def _finding(self, file: FileModel, function: Function, leaks: list[Event]) -> Finding:
        origins = [e.origin for e in leaks]
        names = [file.source.code(e.subject) for e in leaks if e.subject is not None]
        listed = ", ".join(f"`{name}`" for name in names)
        reason = _unclear(file, function, leaks)
        if reason:
            return self.finding(file, origins[0], f"{listed} stays in eval mode when training goes on; {reason}: restore the mode that was")
        body = body_after_docstring(function)
        statements = [file.flow.statement(o) for o in origins]
        last = max(i for i, s in enumerate(body) if s in statements)
        flags = dict(zip(names, flag_names(file, function, names), strict=True))
        inserts = [InsertBefore(file.source.span(s), f"{flags[n]} = {n}.training") for s, n in zip(statements, names, strict=True)]
        message = f"{listed} stays in eval mode when training goes on: restore the mode that was"
        return self.finding(file, origins[0], message, *inserts, *restore_edits(file, body[last + 1 :], flags))


def _unclear(file: FileModel, function: Function, leaks: list[Event]) -> str:
    """Why no fix is certain; empty when one is."""
    body = body_after_docstring(function)
    if any(file.flow.statement(e.origin) not in body for e in leaks):
        return "eval() is called only on some paths"
    if any(not isinstance(file.parent(e.origin), ast.Expr) or not isinstance(e.subject, (ast.Name, ast.Attribute)) for e in leaks):
        return "eval() is part of an expression"
    if file.flow.statement(leaks[-1].origin) is body[-1] or any(e.is_here for e in leaks):
        return "the function itself goes on training"
    if is_generator(function) or isinstance(function, ast.AsyncFunctionDef):
        return "the function is suspended in between"
    if any(e.subject is not None and is_rebound(function, e.subject) for e in leaks):
        return "the function makes or replaces the model"
    return "submodules have modes of their own here" if _sets_submodule_modes(file, leaks) else ""


def _sets_submodule_modes(file: FileModel, leaks: list[Event]) -> bool:
    """Whether the file puts parts of the model (frozen batch norm) into a mode of their own."""
    if _overrides_train(file, leaks):
        return False
    if _MODE_BY_HAND.search(file.source.text):
        return True
    for call in file.methods("eval", "train"):
        for event in file.training.at(call):
            below = event.identity is not None and any(
                e.identity is not None and event.identity != e.identity and event.identity.is_part_of(e.identity) for e in leaks
            )
            if below or _is_loop_variable(file, event.subject):
                return True
    return False


def _is_loop_variable(file: FileModel, subject: ast.expr | None) -> bool:
    """`for m in model.modules(): m.eval()`."""
    if not isinstance(subject, ast.Name):
        return False
    values = [file.flow.definition(b).value for b in file.flow.reaching(subject)]
    methods = {"modules", "children", "named_modules", "named_children"}
    return any(isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr in methods for v in values)


def _overrides_train(file: FileModel, leaks: list[Event]) -> bool:
    """A class that overrides `train` freezes its parts again by itself."""
    facts = [file.fact(e.subject) for e in leaks if e.subject is not None]
    return all(f is not None and file.classes.has_method(f.origin, "train") for f in facts)
