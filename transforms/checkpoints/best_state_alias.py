"""Rule `best-state-alias`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .kept_state import Kept, kept_states
from .kept_use import Use, UseKind, changes_before, is_conditional, is_written_through, uses_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_NEW = "copy.deepcopy"
_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER}
_INTENT = re.compile(r"best|init|orig|snapshot|backup|start|before|prev|old|saved|copy|history", re.IGNORECASE)


class BestStateAlias(Rule):
    """State dict that is kept as the best one, while training goes on changing it.

    ## Why
    `state_dict()` gives references to the parameters, not copies: at the end the "best" state is the last one. A shallow
    copy (`dict(…)`, `.copy()`) shares the tensors all the same.

    ## Example
    ```python
    import torch


    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer, epochs, step, score):
        best, best_state = 0.0, None
        for _ in range(epochs):
            step(model).backward()
            optimizer.step()
            if score(model) > best:
                best_state = model.state_dict()
        model.load_state_dict(best_state)
    ```
    ```python
    import torch
    import copy


    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer, epochs, step, score):
        best, best_state = 0.0, None
        for _ in range(epochs):
            step(model).backward()
            optimizer.step()
            if score(model) > best:
                best_state = copy.deepcopy(model.state_dict())
        model.load_state_dict(best_state)
    ```

    ## Safety
    Unsafe: another state is restored, which is the intent, and the copy takes memory. Only where the state is used after
    the model may have changed; one that is saved or loaded at once is kept. Reported where the live state may be meant
    (one that is taken before the training and saved after it), and where only the name says that it is the best.

    ## References
    https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "best-state-alias"
    category = Category.CHECKPOINTS
    safety = Safety.UNSAFE
    needles = (b"torch", b"state_dict()")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield live states that are kept, and used after more training."""
        for kept in kept_states(file):
            fact = file.fact(kept.owner)
            proven = fact is not None and fact.proven and fact.kind in _STATEFUL
            if (not proven and not _is_called_best(kept)) or is_written_through(file, kept):
                continue
            uses = [use for use in uses_of(file, kept) if changes_before(file, kept, use)]
            if uses or (not proven and _is_restored_elsewhere(file, kept)):
                certain = proven and any(_is_meant_as_copy(file, kept, use) for use in uses)
                yield self._finding(file, kept, certain=certain)

    def _finding(self, file: FileModel, kept: Kept, *, certain: bool) -> Finding:
        message = f"`{file.source.code(kept.place)}` changes with `{file.source.code(kept.owner)}`: "
        name = _deepcopy(file, kept.value) if certain else None
        if name is None:
            return self.finding(file, kept.value, f"{message}if its state at this point is meant, keep a deep copy of it")
        message += "keep a deep copy of its state"
        edits: list[Edit] = [ReplaceExpression(file.source.span(kept.value), f"{name}({file.source.code(kept.state)})")]
        edits += [NeedImport("copy")] if file.names.visible("copy", kept.value) is None and name == _NEW else []
        return self.finding(file, kept.value, message, *edits)


def _is_called_best(kept: Kept) -> bool:
    return "best" in ast.unparse(kept.place).lower()


def _is_restored_elsewhere(file: FileModel, kept: Kept) -> bool:
    """Early stopping in a class of its own: kept by one method, and loaded outside it."""
    function = file.flow.function(kept.value)
    elsewhere = [use for use in uses_of(file, kept) if file.flow.function(use.node) is not function]
    return is_conditional(file, kept.value, None) and any(use.kind is UseKind.LOADED for use in elsewhere)


def _is_meant_as_copy(file: FileModel, kept: Kept, use: Use) -> bool:
    """To load a live state into its own model does nothing; one that is kept on a condition, or by such a name, is a copy."""
    if use.kind is UseKind.LOADED and use.receiver is not None and _is_same(file, use.receiver, kept.owner):
        return True
    loops = file.flow.loops(kept.value)
    return kept.appended or (bool(loops) and is_conditional(file, kept.value, loops[-1])) or bool(_INTENT.search(ast.unparse(kept.place)))


def _is_same(file: FileModel, first: ast.expr, second: ast.expr) -> bool:
    identity = file.identities.of(first)
    return ast.unparse(first) == ast.unparse(second) or (identity is not None and identity == file.identities.of(second))


def _deepcopy(file: FileModel, at: ast.expr) -> str | None:
    """How the file can name deepcopy at a place; None where `copy` means something else."""
    module = file.index.scopes[file.tree]
    for name, bindings in module.bindings.items():
        targets = {file.names.import_target(binding) for binding in bindings}
        if targets <= {"copy.deepcopy", "copy"} and len(targets) == 1 and file.names.visible(name, at) is module:
            return name if targets == {"copy.deepcopy"} else f"{name}.deepcopy"
    return _NEW if file.names.visible("copy", at) is None else None
