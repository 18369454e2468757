"""Rule `item-in-hot-loop`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Recording
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding


class ItemInHotLoop(Rule):
    """`.item()` in every iteration of a training loop, which waits for the GPU each time.

    ## Why
    A number on the Python side can't exist before the GPU has computed it: every `.item()` stops the stream of kernels.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    for x in torch.ones(4, 4, 2):
        loss = model(x).mean()
        loss.backward()
        print(loss.item())
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    for i, x in enumerate(torch.ones(4, 4, 2)):
        loss = model(x).mean()
        loss.backward()
        if i % 50 == 0:
            print(loss.item())
    ```

    ## Safety
    Only reported: how often a value is wanted is the owner's call. Optional, since logging of every step is often meant:
    select it by name.

    ## References
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization
    """

    name = "item-in-hot-loop"
    category = Category.SCALARS
    safety = Safety.REPORT
    optional = True
    needles = (b"torch", b".item()")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `.item()` calls of tensors in each iteration of a loop that trains, or of one over single elements."""
        for call in file.methods("item"):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            loops = file.flow.loops(call)
            if (
                receiver is None
                or call.args
                or not loops
                or file.gradients.recording(call) is Recording.OFF
                or _is_throttled(file, call, loops[0])
            ):
                continue
            text = file.source.code(receiver)
            if _is_element(receiver, loops[0]):
                yield self.finding(file, call, f"`{text}.item()` moves one element at a time: compute on the whole tensor")
            elif file.kinds.is_tensor(receiver) and any(e.happening is Happening.BACKWARD for e in file.training.events(loops[0].body)):
                advice = "ask for it in every n-th iteration, or keep the detached tensor until then"
                yield self.finding(file, call, f"`{text}.item()` waits for the GPU in every iteration: {advice}")


def _is_throttled(file: FileModel, call: ast.Call, loop: Loop) -> bool:
    """Whether a condition stands between the call and its loop."""
    for ancestor in file.flow.ancestors(call):
        if ancestor is loop:
            return False
        if isinstance(ancestor, (ast.If, ast.IfExp)):
            return True
    return False


def _is_element(receiver: ast.expr, loop: Loop) -> bool:
    """`x[i]` with the variable of a loop over a range."""
    if not isinstance(receiver, ast.Subscript) or not isinstance(receiver.slice, ast.Name) or not isinstance(loop, ast.For):
        return False
    over_range = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "range"
    return over_range and isinstance(loop.target, ast.Name) and loop.target.id == receiver.slice.id
