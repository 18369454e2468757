"""Rule `set-to-none-default`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class SetToNoneDefault(Rule):
    """`zero_grad(set_to_none=True)`, which says what is the default since torch 2.0.

    ## Why
    Since torch 2.0 `zero_grad()` sets gradients to None. The keyword is needed only where older versions run the code.

    ## Example
    ```python
    import torch


    def clear(optimizer: torch.optim.Optimizer):
        optimizer.zero_grad(set_to_none=True)
    ```
    ```python
    import torch


    def clear(optimizer: torch.optim.Optimizer):
        optimizer.zero_grad()
    ```

    ## Safety
    Report: the same gradients with torch 2.0 and later, and others before. Optional: select it by name in projects that
    need no older torch. `set_to_none=False` is a choice, and left alone.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "set-to-none-default"
    category = Category.GRADIENTS
    safety = Safety.REPORT
    optional = True
    needles = (b"torch", b"zero_grad", b"True")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `zero_grad` calls of optimizers and modules that pass what is the default."""
        for call in file.methods("zero_grad"):
            values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "set_to_none")]
            count = len(call.args) + len(call.keywords)
            if count == len(values) == 1 and isinstance(values[0], ast.Constant) and values[0].value is True and _is_of_torch(file, call):
                argument = "set_to_none=True" if call.keywords else "True"
                yield self.finding(file, call, f"`{argument}` is the default since torch 2.0: leave it away unless older versions run this")


def _is_of_torch(file: FileModel, call: ast.Call) -> bool:
    """Whether it is the method of torch, not one that a class of the file defines in its own way."""
    if file.functions.targets(call) or not any(event.happening is Happening.CLEAR for event in file.training.at(call)):
        return False
    assert isinstance(call.func, ast.Attribute)
    receiver = call.func.value
    fact = file.fact(receiver)
    if fact is None or fact.kind not in {Kind.MODULE, Kind.OPTIMIZER} or file.classes.has_method(fact.origin, "zero_grad"):
        return False
    # What a library has made may have a zero_grad of its own, which keeps zeroes by default.
    made = [file.flow.definition(b).value for b in file.flow.reaching(receiver)] if isinstance(receiver, ast.Name) else []
    return fact.origin is not None or not any(isinstance(value, ast.Call) for value in made)
