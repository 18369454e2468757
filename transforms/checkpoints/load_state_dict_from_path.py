"""Rule `load-state-dict-from-path`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.effects import LOADS_OTHERWISE, RAISES_LESS
from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import catches
from torchfix_codemods.rule import Category, Rule, Safety

from .path_kind import is_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER}


class LoadStateDictFromPath(Rule):
    """`load_state_dict` that is given the path of a file.

    ## Why
    It takes the dictionary, and raises for a path: "Expected state_dict to be dict-like". Make the model, load the file,
    and then the state.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict("w.pt")
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("w.pt", map_location="cpu", weights_only=True))
    ```

    ## Safety
    Safe: the call has always raised; unsafe where that error is caught. Only for modules, optimizers, schedulers and
    scalers that don't define `load_state_dict` themselves, and for what is proven to be a path.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    """

    name = "load-state-dict-from-path"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    effects = (
        RAISES_LESS,
        LOADS_OTHERWISE,
    )
    needles = (b"torch", b"load_state_dict")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls whose state is a path."""
        for call in file.methods("load_state_dict"):
            given = next((k.value for k in call.keywords if k.arg == "state_dict"), None)
            state = call.args[0] if call.args else given
            if state is None or not _copies_state(file, call) or not is_path(file, state):
                continue
            handlers = _handlers(file, call)
            if not any(_loads(handler) for handler in handlers):
                yield self._finding(file, call, state, Safety.UNSAFE if handlers else Safety.SAFE)

    def _finding(self, file: FileModel, call: ast.Call, path: ast.expr, safety: Safety) -> Finding:
        message = "load_state_dict takes a dictionary, not a path: load the file first"
        load, code = file.spelling("torch.load", call), file.source.code(path)
        if load is None:
            return self.finding(file, call, message)
        quote = "'" if code.startswith("'") else '"'
        loaded = f"{load}({code}, map_location={quote}cpu{quote}, weights_only=True)"
        edits: list[Edit] = [ReplaceExpression(file.source.span(path), loaded)]
        edits += [NeedImport("torch")] if file.lacks_torch(call) else []
        return self.finding(file, call, message, *edits, safety=safety)


def _copies_state(file: FileModel, call: ast.Call) -> bool:
    """Whether the method is torch's own, which takes nothing but a dictionary."""
    fact = file.fact(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if fact is None or not fact.proven or fact.kind not in _STATEFUL:
        return False
    return not file.classes.has_method(fact.origin, "load_state_dict")


def _handlers(file: FileModel, call: ast.Call) -> list[ast.ExceptHandler]:
    """What catches the error that a path raises."""
    tries = [a for a in file.flow.ancestors(call) if isinstance(a, ast.Try)]
    return [handler for attempt in tries for handler in attempt.handlers if catches(handler, "TypeError", "AttributeError")]


def _loads(handler: ast.ExceptHandler) -> bool:
    """Whether the load that is meant stands in the handler."""
    return any(isinstance(node, ast.Attribute) and node.attr == "load_state_dict" for node in ast.walk(handler))
