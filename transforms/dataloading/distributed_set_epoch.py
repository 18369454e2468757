"""Rule `distributed-set-epoch`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

from .distributed import DistributedLoader, distributed_loaders
from .loaders import is_builtin, is_under_framework

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding

_RANGES = frozenset({"tqdm.trange", "tqdm.auto.trange"})
_DEPTH = 2
"""Functions of the file into which the body of an epoch loop is followed."""


class DistributedSetEpoch(Rule):
    """Distributed sampler that is never told the epoch, and shuffles alike in each.

    ## Why
    A DistributedSampler seeds its order with the epoch that `set_epoch` has told it: without the call every epoch has
    the order of the first.

    ## Example
    ```python
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    def train(dataset, epochs, step):
        sampler = DistributedSampler(dataset)
        loader = DataLoader(dataset, sampler=sampler)
        for epoch in range(epochs):
            for batch in loader:
                step(batch)
    ```
    ```python
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    def train(dataset, epochs, step):
        sampler = DistributedSampler(dataset)
        loader = DataLoader(dataset, sampler=sampler)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for batch in loader:
                step(batch)
    ```

    ## Safety
    Unsafe: the order changes from epoch to epoch, as intended. Kept for `shuffle=False` and for loaders of evaluation, where
    a sampler is told anywhere in the file, and under libraries that tell them (accelerate, Lightning). Reported where the
    epoch has no name, and for `while` loops.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    """

    name = "distributed-set-epoch"
    category = Category.DATALOADING
    safety = Safety.UNSAFE
    needles = (b"torch", b"DistributedSampler")
    pattern = re.compile(rb"\b(for|while) ")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield epoch loops over a loader whose sampler isn't told the epoch."""
        if b"set_epoch" in file.source.data or file.roles.in_tests:
            return
        for loader in distributed_loaders(file):
            for loop in file.loops:
                if not _makes(file, loop, loader) and _is_outermost(file, loop) and not is_under_framework(file, loader.call):
                    read = _read_in(file, loop.body, loader.call, _DEPTH)
                    if read is not None:
                        yield self._finding(file, loop, read, loader)

    def _finding(self, file: FileModel, loop: Loop, read: ast.expr, loader: DistributedLoader) -> Finding:
        sampler = loader.sampler_at(file, loop, read)
        place = loop.test if isinstance(loop, ast.While) else loop.iter
        message = f"`{sampler or 'the sampler'}` gives the same order in every epoch: tell it the epoch"
        guard = loader.guard(file, sampler) if sampler else None
        if isinstance(loop, ast.While) or not isinstance(loop.target, ast.Name) or loop.target.id.startswith("_") or guard is None:
            return self.finding(file, place, f"{message} (name the number of the epoch, and call set_epoch with it)")
        code = f"{sampler}.set_epoch({loop.target.id})"
        edit = InsertBefore(file.source.span(loop.body[0]), f"if {guard}:\n    {code}" if guard else code)
        return self.finding(file, place, message, edit)


def _makes(file: FileModel, loop: Loop, loader: DistributedLoader) -> bool:
    """Whether the loader is made in the loop, anew in each round."""
    return loop in file.flow.loops(loader.call)


def _is_outermost(file: FileModel, loop: Loop) -> bool:
    """Whether a loop counts, and stands in no other that does."""
    return _counts(file, loop) and not any(_counts(file, outer) for outer in file.flow.loops(loop))


def _counts(file: FileModel, loop: Loop) -> bool:
    if isinstance(loop, ast.While):
        return True
    values = loop.iter
    if isinstance(values, ast.Call) and ast.unparse(values.func).endswith("tqdm") and values.args:
        values = values.args[0]
    if not isinstance(values, ast.Call):
        return False
    return is_builtin(file, values.func, frozenset({"range"})) or file.qualified(values.func) in _RANGES


def _read_in(file: FileModel, body: list[ast.stmt], loader: ast.Call, depth: int) -> ast.expr | None:
    """Where code runs over a loader, or gives it to a function that may; functions of the file are followed."""
    for node in (inner for statement in body for inner in own_nodes(statement)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and not _only_asks(file, node):
            fact = file.fact(node)
            if fact is not None and fact.proven and fact.call is loader:
                return node
        if isinstance(node, ast.Call) and depth:
            found = (_read_in(file, function.body, loader, depth - 1) for function in file.functions.targets(node))
            read = next((read for read in found if read is not None), None)
            if read is not None:
                return read
    return None


def _only_asks(file: FileModel, node: ast.expr) -> bool:
    """`len(loader)` and `loader.dataset` run over nothing."""
    parent = file.parent(node)
    return isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and file.qualified(parent.func) == "builtins.len")
