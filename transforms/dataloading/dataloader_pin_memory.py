"""Rule `dataloader-pin-memory`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, NeedImport
from torchfix_codemods.model.torch_api import LOADER
from torchfix_codemods.rule import Category, Rule, Safety

from .batches import collates_tensors, is_on_device, moves
from .loaders import is_literal, is_open, is_under_framework, loaders_of, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class DataloaderPinMemory(Rule):
    """Batches that are copied to a device from memory that isn't pinned.

    ## Why
    From pinned memory a copy to the GPU is faster, and with `non_blocking=True` it runs beside the computation.

    ## Example
    ```python
    import torch
    from torch.utils.data import DataLoader


    def run(dataset, device):
        loader = DataLoader(dataset, batch_size=2)
        for x, y in loader:
            x = x.to(device)
    ```
    ```python
    import torch
    from torch.utils.data import DataLoader


    def run(dataset, device):
        loader = DataLoader(dataset, batch_size=2, pin_memory=torch.cuda.is_available())
        for x, y in loader:
            x = x.to(device, non_blocking=True)
    ```

    ## Safety
    Unsafe: the same values, in other memory. Pinned only where there is a GPU, since it warns elsewhere. Kept where the
    data is on a device already, or is never moved, where `pin_memory=False` is written, and under libraries that move the
    batches; copies back to the CPU are never made asynchronous. Reported where a collate_fn may give what can't be pinned.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#memory-pinning
    """

    name = "dataloader-pin-memory"
    category = Category.DATALOADING
    safety = Safety.UNSAFE
    needles = (b"torch", b"DataLoader")
    pattern = re.compile(rb"\.(to|cuda)\(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loaders whose batches a loop moves to a device."""
        for call in file.calls(LOADER):
            pinned = _is_pinned(file, call)
            if is_literal(option(call, "pin_memory"), False) or (is_open(call) and not pinned) or is_on_device(file, call):
                continue
            moved = [move for loop in file.index.all(ast.For) if call in loaders_of(file, loop.iter) for move in moves(file, loop)]
            if moved and not is_under_framework(file, call) and not file.roles.in_tests:
                yield from self._finding(file, call, moved, pinned)

    def _finding(self, file: FileModel, call: ast.Call, moved: list[ast.Call], pinned: bool) -> Iterator[Finding]:
        waiting = [move for move in moved if not any(keyword.arg == "non_blocking" for keyword in move.keywords)]
        if pinned and not waiting:
            return
        what = "copy without waiting" if pinned else "pin the memory where there is a GPU, and copy without waiting"
        message = f"its batches are copied to a device: {what}"
        edits = [] if pinned else _pinning(file, call)
        if collates_tensors(file, call) and (pinned or edits):
            yield self.finding(
                file, call, message, *edits, *(AddKeyword(file.source.span(move), "non_blocking", "True") for move in waiting)
            )
        elif not pinned:
            yield self.finding(file, call, f"{message}, if what collate_fn gives can be pinned")


def _pinning(file: FileModel, call: ast.Call) -> list[Edit]:
    available = file.spelling("torch.cuda.is_available", call)
    if available is None:
        return []
    needed: list[Edit] = [NeedImport("torch")] if file.lacks_torch(call) else []
    return [AddKeyword(file.source.span(call), "pin_memory", f"{available}()"), *needed]


def _is_pinned(file: FileModel, call: ast.Call) -> bool:
    """`pin_memory` in the call, or in the dictionary that it unpacks."""
    if option(call, "pin_memory") is not None:
        return True
    names = [k.value for k in call.keywords if k.arg is None and isinstance(k.value, ast.Name)]
    written = [file.flow.definition(binding).value for name in names for binding in file.names.bindings(name)]
    updates = [update for update in file.methods("update") for name in names if ast.unparse(update.func) == f"{name.id}.update"]
    return any("pin_memory" in ast.unparse(value) for value in [*written, *updates] if value is not None)
