"""Rule `distributed-set-epoch`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore
from torchfix_codemods.rule import Category, Rule, Safety

from .loaders import is_literal, loaders, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_SAMPLERS = frozenset({"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"})
_FRAMEWORKS = ("lightning", "pytorch_lightning", "accelerate", "ignite", "transformers", "composer")


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
    Unsafe: the order changes from epoch to epoch, as intended. Kept for `shuffle=False`, for samplers that are told
    anywhere in the file, and under libraries that tell them (accelerate, Lightning). Reported where the epoch has no name.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    """

    name = "distributed-set-epoch"
    category = Category.DATALOADING
    safety = Safety.UNSAFE
    needles = (b"torch", b"DistributedSampler", b"for ")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield epoch loops over a loader whose sampler isn't told the epoch."""
        if b"set_epoch" in file.source.data or any(file.names.imports(name) for name in _FRAMEWORKS):
            return
        for call in loaders(file):
            sampler, statement = option(call, "sampler"), file.flow.statement(call)
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if not isinstance(sampler, ast.Name) or not isinstance(target, ast.Name) or not _is_distributed(file, sampler):
                continue
            for loop in file.index.all(ast.For):
                if _is_epoch_loop(file, loop, target, sampler):
                    yield self._finding(file, loop, sampler)

    def _finding(self, file: FileModel, loop: ast.For, sampler: ast.Name) -> Finding:
        message = f"`{sampler.id}` gives the same order in every epoch: tell it the epoch"
        if not isinstance(loop.target, ast.Name) or loop.target.id.startswith("_"):
            return self.finding(file, loop.iter, f"{message} (name the loop variable, and call set_epoch with it)")
        code = f"{sampler.id}.set_epoch({loop.target.id})"
        if _may_be_none(file, sampler):
            code = f"if {sampler.id} is not None:\n    {code}"
        return self.finding(file, loop.iter, message, InsertBefore(file.source.span(loop.body[0]), code))


def _values(file: FileModel, name: ast.Name) -> list[ast.expr]:
    values = [file.flow.definition(binding).value for binding in file.names.bindings(name)]
    flat = [inner for value in values for inner in ((value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,))]
    return [value for value in flat if value is not None]


def _is_distributed(file: FileModel, name: ast.Name) -> bool:
    values = _values(file, name)
    made = [v for v in values if isinstance(v, ast.Call) and file.qualified(v.func) in _SAMPLERS]
    rest = [v for v in values if v not in made]
    shuffles = all(not any(k.arg == "shuffle" and not is_literal(k.value, True) for k in call.keywords) for call in made)
    return bool(made) and shuffles and all(is_literal(v, None) for v in rest) and all(len(call.args) <= 1 + 2 for call in made)


def _may_be_none(file: FileModel, name: ast.Name) -> bool:
    return any(is_literal(value, None) for value in _values(file, name))


def _is_epoch_loop(file: FileModel, loop: ast.For, loader: ast.Name, sampler: ast.Name) -> bool:
    """A loop over `range(…)` in whose body the loader is used, and both names are visible."""
    over_range = isinstance(loop.iter, ast.Call) and file.qualified(loop.iter.func) == "builtins.range"
    if not over_range or file.names.scope_of(sampler) is not file.names.visible(sampler.id, loop):
        return False
    reads = [n for statement in loop.body for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == loader.id]
    outermost = not any(isinstance(other, ast.For) and "range" in ast.unparse(other.iter) for other in file.flow.loops(loop))
    return outermost and any(loader in file.names.bindings(read) and isinstance(read.ctx, ast.Load) for read in reads)
