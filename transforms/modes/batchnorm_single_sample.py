"""Rule `batchnorm-single-sample`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .single_values import normalizes_single_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class BatchnormSingleSample(Rule):
    """Training batches that may hold a single sample, with a batch normalisation that can't take one.

    ## Why
    In train mode batch normalisation needs more than one value per channel. When the last batch is left with one
    sample, it raises "Expected more than 1 value per channel when training", at the end of an epoch.

    ## Example
    ```python
    from torch import nn, optim
    from torch.utils.data import DataLoader

    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)


    def train(dataset):
        loader = DataLoader(dataset, batch_size=32, shuffle=True)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    ```
    ```python
    from torch import nn, optim
    from torch.utils.data import DataLoader

    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)


    def train(dataset):
        loader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    ```

    ## Safety
    A report: `drop_last=True` leaves out data, and gives no batch at all when the dataset is smaller than one. Silent
    for loaders that no backward follows (dropping data would change a metric), and for normalisation over space too.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
    https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    name = "batchnorm-single-sample"
    category = Category.MODES
    safety = Safety.REPORT
    needles = (b"torch", b"BatchNorm", b"DataLoader", b"backward")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the loaders of training loops whose last batch may hold one sample."""
        loaders = [call for call in file.calls("torch.utils.data.DataLoader") if _may_give_one(call)]
        if not loaders or not normalizes_single_values(file):
            return
        trained = _trained_loaders(file)
        for loader in loaders:
            if loader in trained:
                yield self.finding(file, loader, _message(file, loader))


def _message(file: FileModel, loader: ast.Call) -> str:
    if _batch_size(loader) == 1:
        return "batch normalisation can't train on batches of one sample: use a larger batch_size"
    dataset = file.source.code(loader.args[0]) if loader.args and isinstance(loader.args[0], (ast.Name, ast.Attribute)) else "the dataset"
    return f"a last batch of one sample makes batch normalisation raise: pass drop_last=True, unless `{dataset}` is smaller than a batch"


def _trained_loaders(file: FileModel) -> set[ast.Call]:
    """The constructors of the loaders whose batches are followed by a backward."""
    found: set[ast.Call] = set()
    for loop in file.loops:
        if isinstance(loop, ast.While):
            continue
        facts = [file.fact(node) for node in ast.walk(loop.iter) if isinstance(node, (ast.Name, ast.Attribute, ast.Call))]
        calls = {fact.call for fact in facts if fact is not None and fact.kind is Kind.LOADER and fact.call is not None}
        if calls - found and any(event.happening is Happening.BACKWARD for event in file.training.events(loop.body)):
            found |= calls
    return found


def _may_give_one(call: ast.Call) -> bool:
    """Whether a loader forms batches itself, and keeps a last one that is not full."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in options or "batch_sampler" in options or any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    size, drop_last = _batch_size(call), options.get("drop_last")
    keeps_last = drop_last is None or (isinstance(drop_last, ast.Constant) and drop_last.value is False)
    return size == 1 or (size is not None and keeps_last and len(call.args) < 9)  # drop_last is the ninth


def _batch_size(call: ast.Call) -> int | str | None:
    """The number of samples in a batch: as an integer, or as text where it is computed; None for no batches."""
    size = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "batch_size"), None)
    if size is None:
        return 1
    if isinstance(size, ast.Constant):
        return size.value if isinstance(size.value, int) else None
    return ast.unparse(size)
