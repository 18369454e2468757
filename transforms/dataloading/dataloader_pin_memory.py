"""Rule `dataloader-pin-memory`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, NeedImport
from torchfix_codemods.model import Kind
from torchfix_codemods.model.torch_api import LOADER
from torchfix_codemods.rule import Category, Rule, Safety

from .loaders import is_open, loader_of, option

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
    data is on a device already, is never moved, or is collated by a function of one's own; copies back to the CPU are
    never made asynchronous.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#memory-pinning
    """

    name = "dataloader-pin-memory"
    category = Category.DATALOADING
    safety = Safety.UNSAFE
    needles = (b"torch", b"DataLoader")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loaders whose batches a loop moves to a device."""
        for call in file.calls(LOADER):
            loops = [loop for loop in file.index.all(ast.For) if loader_of(file, loop.iter) is call]
            moves = [move for loop in loops for move in _moves(file, loop)]
            pinned = _is_pinned(file, call)
            if not moves or option(call, "collate_fn") is not None or _is_on_device(file, call) or (is_open(call) and not pinned):
                continue
            waiting = [move for move in moves if not any(k.arg == "non_blocking" for k in move.keywords)]
            edits: list[Edit] = [AddKeyword(file.source.span(move), "non_blocking", "True") for move in waiting]
            if not pinned:
                edits = [*_pinning(file, call), *edits]
            if edits and not (pinned and not waiting):
                what = "copy without waiting" if pinned else "pin the memory where there is a GPU, and copy without waiting"
                yield self.finding(file, call, f"its batches are copied to a device: {what}", *edits)


def _pinning(file: FileModel, call: ast.Call) -> list[Edit]:
    available = file.spelling("torch.cuda.is_available", call)
    if available is None:
        return []
    needed: list[Edit] = [NeedImport("torch")] if file.lacks_torch(call) else []
    return [AddKeyword(file.source.span(call), "pin_memory", f"{available}()"), *needed]


def _moves(file: FileModel, loop: ast.For) -> Iterator[ast.Call]:
    """Moves of the loop's own batch to a device that isn't the CPU by name."""
    targets = {n for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    for node in (n for statement in loop.body for n in ast.walk(statement)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
            continue
        if node.func.attr in {"to", "cuda"} and targets & set(file.flow.reaching(node.func.value)) and _is_to_device(file, node):
            yield node


def _is_to_device(file: FileModel, move: ast.Call) -> bool:
    if isinstance(move.func, ast.Attribute) and move.func.attr == "cuda":
        return not move.args
    if len(move.args) != 1:
        return False
    fact, text = file.fact(move.args[0]), file.source.code(move.args[0])
    is_device = (fact is not None and fact.kind is Kind.DEVICE) or "dev" in text.lower() or "cuda" in text
    return is_device and "cpu" not in text


def _is_pinned(file: FileModel, call: ast.Call) -> bool:
    """`pin_memory` in the call, or in the literal dictionary that it unpacks."""
    if option(call, "pin_memory") is not None:
        return True
    unpacked = [k.value for k in call.keywords if k.arg is None and isinstance(k.value, ast.Name)]
    values = [file.flow.definition(b).value for name in unpacked for b in file.names.bindings(name)]
    return any(value is not None and "pin_memory" in ast.unparse(value) for value in values)


def _is_on_device(file: FileModel, call: ast.Call) -> bool:
    """Whether the dataset may hold tensors of a device already."""
    dataset = option(call, "dataset")
    values: list[ast.expr | None] = [dataset]
    if isinstance(dataset, ast.Name):
        values += [file.flow.definition(binding).value for binding in file.flow.reaching(dataset)]
    return any(word in ast.unparse(value) for value in values if value is not None for word in ("device", ".cuda(", ".to("))
