"""Rule `dataloader-worker-count`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.rule import Category, Rule, Safety

from .datasets import is_in_memory
from .loaders import has_no_workers, loaders, number_of_workers, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_MANY = 32
"""Workers from which most machines have fewer cores than workers."""
_CORES = frozenset({"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count"})


class DataloaderWorkerCount(Rule):
    """Loader with more workers than do any good.

    ## Why
    Each worker is a process with a copy of what the dataset holds: beyond the number of cores they only cost memory, and
    for tensors that are in memory already, passing them between processes takes longer than reading them.

    ## Example
    ```python
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.arange(8.0)), num_workers=4)
    ```
    ```python
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.arange(8.0)))
    ```

    ## Safety
    Only reported: how many workers are best is found by measuring. Found for a number above 32 or a multiple of the
    cores, and for any number of workers over what is proven to be in memory: a TensorDataset or a part of it, a list, or
    a dataset that does nothing but index its tensors.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
    """

    name = "dataloader-worker-count"
    category = Category.DATALOADING
    safety = Safety.REPORT
    needles = (b"torch", b"DataLoader")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loaders with too many workers."""
        for call in loaders(file):
            if has_no_workers(file, call) or file.roles.in_tests:
                continue
            workers = number_of_workers(file, call)
            if _exceeds_cores(file, option(call, "num_workers")):
                yield self.finding(
                    file, call, "more workers than cores take turns, and each copies the dataset: use os.cpu_count() at most"
                )
            elif workers is not None and workers > _MANY:
                message = (
                    f"{workers} workers are more than most machines have cores, and each copies the dataset: use os.cpu_count(), or measure"
                )
                yield self.finding(file, call, message)
            elif workers and is_in_memory(file, call):
                message = "the data is in memory already: workers copy it and pass it on, which takes longer than num_workers=0"
                yield self.finding(file, call, message)


def _exceeds_cores(file: FileModel, workers: ast.expr | None) -> bool:
    """`os.cpu_count() * k`, for a literal k above one."""
    values = file.origins.of(workers)
    return bool(values) and all(isinstance(value, ast.BinOp) and _multiplies_cores(file, value) for value in values)


def _multiplies_cores(file: FileModel, value: ast.BinOp) -> bool:
    sides = (value.left, value.right)
    factors = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, (int, float))]
    cores = [side for side in sides if isinstance(side, ast.Call) and file.qualified(side.func) in _CORES]
    return isinstance(value.op, ast.Mult) and bool(cores) and any(factor > 1 for factor in factors)
