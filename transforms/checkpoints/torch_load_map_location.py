"""Rule `torch-load-map-location`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, ReplaceExpression
from torchfix_codemods.effects import LOADS_WITH_OPTIONS, RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .load_use import Use, use_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class TorchLoadMapLocation(Rule):
    """`torch.load` that puts tensors back on the device they were saved from.

    ## Why
    A checkpoint written on a GPU does not load on a machine without one: "Attempting to deserialize object on a
    CUDA device". With one, every process first loads onto the device that wrote it. `load_state_dict` copies into
    the parameters where they are, so the CPU is the right place to load to, wherever the model lives.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("weights.pt"))
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("weights.pt", map_location="cpu"))
    ```

    ## Safety
    Safe where all that is loaded goes into `load_state_dict` of a proven module, optimizer, scheduler or scaler, or
    is a number. Unsafe where the receiver is unknown, `assign=True` is used, or a `device` of the file is filled in
    for an object that is used directly; only reported when there is no such device.
    `map_location=lambda storage, loc: storage` means the same as `"cpu"`.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """

    name = "torch-load-map-location"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    effects = (
        LOADS_WITH_OPTIONS,
        RAISES_LESS,
    )
    needles = (b"torch", b"load")
    pattern = re.compile(rb"\bload\b")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loads without a map location, and identity lambdas."""
        for call in file.calls("torch.load"):
            if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
                continue
            location = next((k.value for k in call.keywords if k.arg == "map_location"), call.args[1] if len(call.args) > 1 else None)
            if location is None and call.args and not _is_in_memory(file, call.args[0]) and not _has_a_branch_for_cpu(file, call):
                yield self._missing(file, call)
            elif isinstance(location, ast.Lambda) and _is_identity(location):
                message = "this lambda means map_location='cpu'; the plain form also works with mmap and weights_only"
                yield self.finding(file, call, message, ReplaceExpression(file.source.span(location), '"cpu"'))

    def _missing(self, file: FileModel, call: ast.Call) -> Finding:
        use = use_of(file, call)
        span = file.source.span(call)
        message = "torch.load without map_location fails on a machine without the device that the file was saved from"
        if use is not Use.DIRECT:
            safety = Safety.SAFE if use <= Use.COPIED else Safety.UNSAFE
            return self.finding(file, call, message, AddKeyword(span, "map_location", '"cpu"'), safety=safety)
        device = file.device_at(call)
        if device:
            return self.finding(file, call, message, AddKeyword(span, "map_location", device), safety=Safety.UNSAFE)
        return self.finding(file, call, f"{message}; pass map_location='cpu', or the device that the object is used on")


def _is_in_memory(file: FileModel, node: ast.expr) -> bool:
    """A round trip through a buffer of this process: everything comes back to where it was."""
    if isinstance(node, ast.Name):
        values = [file.flow.definition(b).value for b in file.names.bindings(node)]
        return any(isinstance(v, ast.Call) and file.qualified(v.func) == "io.BytesIO" for v in values)
    return isinstance(node, ast.Call) and file.qualified(node.func) == "io.BytesIO"


def _has_a_branch_for_cpu(file: FileModel, call: ast.Call) -> bool:
    """`if cuda: load(p) else: load(p, map_location=…)`: the author has thought of both machines."""
    for ancestor in file.flow.ancestors(call):
        if isinstance(ancestor, (ast.If, ast.IfExp)) and "cuda" in ast.unparse(ancestor.test):
            other = ancestor.orelse if isinstance(ancestor.orelse, list) else [ancestor.orelse]
            calls = (node for statement in other for node in ast.walk(statement) if isinstance(node, ast.Call))
            if any(keyword.arg == "map_location" for other_call in calls for keyword in other_call.keywords):
                return True
    return False


def _is_identity(node: ast.Lambda) -> bool:
    arguments = node.args.args
    plain = len(arguments) == 2 and not (node.args.vararg or node.args.kwarg or node.args.kwonlyargs)  # storage, location
    return plain and isinstance(node.body, ast.Name) and node.body.id == arguments[0].arg
