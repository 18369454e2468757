"""Rule `batchnorm-single-sample`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_POOLED = re.compile(rb"AdaptiveAvgPool2d\(\s*(\(1,\s*1\)|1)\s*\)")
_THROUGH = frozenset({"builtins.enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange", "builtins.iter"})


class BatchnormSingleSample(Rule):
    """Training loader whose last batch may be a single sample, for a model with batch normalisation.

    ## Why
    In train mode batch normalisation needs more than one value per channel: a batch of one sample raises "Expected more
    than 1 value per channel when training", at the end of the first epoch.

    ## Example
    ```python
    from torch import nn
    from torch.utils.data import DataLoader

    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


    def train(dataset):
        loader = DataLoader(dataset, batch_size=4, shuffle=True)
        for (x,) in loader:
            model(x).sum().backward()
    ```
    ```python
    from torch import nn
    from torch.utils.data import DataLoader

    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


    def train(dataset):
        loader = DataLoader(dataset, batch_size=4, shuffle=True, drop_last=True)
        for (x,) in loader:
            model(x).sum().backward()
    ```

    ## Safety
    Only reported: dropping data is the owner's call, and with a dataset smaller than a batch nothing would be left. Only
    for loaders that a loop with a backward runs over, in a file that makes a BatchNorm1d (or pools to one pixel before a
    BatchNorm2d).

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
    """

    name = "batchnorm-single-sample"
    category = Category.MODES
    safety = Safety.REPORT
    needles = (b"torch", b"BatchNorm", b"DataLoader", b"backward")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the loaders of training loops that may give a batch of one."""
        if not file.calls("torch.nn.BatchNorm1d") and not _POOLED.search(file.source.data):
            return
        done: set[ast.Call] = set()
        for loop in file.index.all(ast.For):
            loader = _loader(file, loop)
            if loader is None or loader in done or not any(e.happening is Happening.BACKWARD for e in file.training.events(loop.body)):
                continue
            done.add(loader)
            message = _message(file, loader)
            if message:
                yield self.finding(file, loader, message)


def _loader(file: FileModel, loop: ast.For) -> ast.Call | None:
    """The call that made the loader which a loop runs over."""
    source = loop.iter
    while isinstance(source, ast.Call) and file.qualified(source.func) in _THROUGH and source.args:
        source = source.args[0]
    fact = file.fact(source)
    return fact.call if fact is not None and fact.proven and fact.kind is Kind.LOADER else None


def _message(file: FileModel, loader: ast.Call) -> str:
    names = {k.arg for k in loader.keywords}
    if names & {None, "drop_last", "batch_sampler"} or len(loader.args) > 1 + 1:
        return ""
    size = next((k.value for k in loader.keywords if k.arg == "batch_size"), loader.args[1] if len(loader.args) > 1 else None)
    if size is None or (isinstance(size, ast.Constant) and size.value == 1):
        return "batch normalisation can't train on batches of one sample: use a larger batch_size"
    dataset = file.source.code(loader.args[0]) if loader.args else "the dataset"
    advice = f"pass drop_last=True, unless `{dataset}` is smaller than a batch"
    return f"a last batch of one sample makes batch normalisation raise: {advice}"
