"""Rule `item-in-hot-loop`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Recording
from torchfix_codemods.rule import Category, Rule, Safety

from .elements import is_single_element

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding

_DEVICE = re.compile(rb"cuda|device|gpu|mps", re.IGNORECASE)
_SOMETIMES = re.compile(r"%|log|print|verbose|debug|report|every|interval|freq|len\(", re.IGNORECASE)


class ItemInHotLoop(Rule):
    """`.item()` in every iteration of a training loop, which waits for the GPU each time.

    ## Why
    A number on the Python side can't exist before the GPU has computed it: every `.item()` stops the stream of kernels.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1).to("cuda")
    for x in torch.ones(4, 4, 2, device="cuda"):
        loss = model(x).mean()
        loss.backward()
        print(loss.item())
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1).to("cuda")
    for i, x in enumerate(torch.ones(4, 4, 2, device="cuda")):
        loss = model(x).mean()
        loss.backward()
        if i % 50 == 0:
            print(loss.item())
    ```

    ## Safety
    Only reported: how often a value is wanted is the owner's call. Optional, since logging of every step is often meant:
    select it by name. Silent in files that name no device, in evaluations under `no_grad`, and where a condition such
    as `step % n` lets only some rounds through.

    ## References
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization
    """

    name = "item-in-hot-loop"
    category = Category.SCALARS
    safety = Safety.REPORT
    optional = True
    needles = (b"torch", b".item()")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `.item()` calls of tensors in each round of a loop that trains, or of one over single elements."""
        on_device = _DEVICE.search(file.source.data) is not None
        for call in file.methods("item"):
            if call.args or not isinstance(call.func, ast.Attribute) or file.gradients.recording(call) is Recording.OFF:
                continue
            tensor = call.func.value
            text = file.source.code(tensor)
            if is_single_element(file, tensor):
                yield self.finding(
                    file, call, f"`{text}.item()` reads one element at a time: compute on the whole tensor, or take `tolist()` once"
                )
            elif on_device and file.kinds.is_tensor(tensor) and _is_in_hot_loop(file, call):
                advice = "ask for it in every n-th iteration, or keep the detached tensor until then"
                yield self.finding(file, call, f"`{text}.item()` waits for the GPU in every iteration: {advice}")


def _is_in_hot_loop(file: FileModel, call: ast.Call) -> bool:
    """Whether each round of a loop that trains runs the call."""
    return any(not _is_throttled(file, call, loop) and _trains(file, loop) for loop in file.flow.loops(call))


def _trains(file: FileModel, loop: Loop) -> bool:
    backwards = (event for event in file.training.events(loop.body) if event.happening is Happening.BACKWARD)
    return any(_is_hot(file, event, loop) for event in backwards)


def _is_hot(file: FileModel, backward: Event, loop: Loop) -> bool:
    """Whether the loop is the innermost one around a backward: a loop over epochs has time for a number."""
    inner = file.flow.loops(backward.node)
    return bool(inner) and inner[0] is loop and (backward.is_here or not file.flow.loops(backward.origin))


def _is_throttled(file: FileModel, call: ast.Call, loop: Loop) -> bool:
    """Whether a condition lets the call run only in some rounds; a call in the condition itself runs in all."""
    child: ast.AST = call
    for ancestor in file.flow.ancestors(call):
        if ancestor is loop:
            return False
        if isinstance(ancestor, (ast.If, ast.IfExp)) and child is not ancestor.test and _SOMETIMES.search(ast.unparse(ancestor.test)):
            return True
        child = ancestor
    return False
