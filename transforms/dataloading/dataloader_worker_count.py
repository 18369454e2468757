"""Rule `dataloader-worker-count`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.rule import Category, Rule, Safety

from .loaders import has_no_workers, is_in_memory, loaders, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_MANY = 32
"""Workers from which most machines have fewer cores than workers."""


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
    Only reported: how many workers are best is found by measuring. Found for a literal number above 32, and for any
    number of workers over a TensorDataset.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
    """

    name = "dataloader-worker-count"
    category = Category.DATALOADING
    safety = Safety.REPORT
    needles = (b"torch", b"DataLoader", b"num_workers")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loaders with too many workers."""
        for call in loaders(file):
            workers = option(call, "num_workers")
            if workers is None or has_no_workers(call) or not isinstance(workers, ast.Constant) or not isinstance(workers.value, int):
                continue
            if is_in_memory(file, call):
                yield self.finding(
                    file, call, "the data is in memory already: workers copy it and pass it on, which takes longer than num_workers=0"
                )
            elif workers.value > _MANY:
                message = f"{workers.value} workers are more than most machines have cores, and each copies the dataset: use os.cpu_count(), or measure"
                yield self.finding(file, call, message)
