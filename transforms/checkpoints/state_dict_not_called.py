"""Rule `state-dict-not-called`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .payload import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER}


class StateDictNotCalled(Rule):
    """`model.state_dict` that is saved without being called.

    ## Why
    The method itself is pickled, and the whole model with it: the file doesn't load by default, and what does load is no
    dictionary.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    torch.save(model.state_dict, "w.pt")
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    torch.save(model.state_dict(), "w.pt")
    ```

    ## Safety
    Unsafe: the file holds something else, which is the intent. Only for modules, optimizers, schedulers and scalers; an
    attribute of that name that holds a dictionary is kept.

    ## References
    https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "state-dict-not-called"
    category = Category.CHECKPOINTS
    safety = Safety.UNSAFE
    needles = (b"torch", b"save", b".state_dict")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield methods that are saved, alone or in a dictionary."""
        for call in file.calls("torch.save"):
            saved = call.args[0] if call.args else None
            for value in [saved, *(value for _, value in entries(file, saved))] if saved is not None else ():
                if isinstance(value, ast.Attribute) and value.attr == "state_dict":
                    fact = file.fact(value.value)
                    if fact is not None and fact.proven and fact.kind in _STATEFUL:
                        code = file.source.code(value)
                        edit = ReplaceExpression(file.source.span(value), f"{code}()")
                        yield self.finding(file, value, f"`{code}` is the method, and pickles the whole object: call it", edit)
