"""Rule `dataloader-train-shuffle`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword
from torchfix_codemods.rule import Category, Rule, Safety

from .loaders import is_map_style, loaders, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_TRAIN = re.compile(r"(^|_)train", re.IGNORECASE)
_NOT_TRAIN = re.compile(r"eval|val|test|infer|predict|calib|stat|mean|feature", re.IGNORECASE)
_IN_ORDER = re.compile(r"window|series|lstm|seq|bptt|stream|video|ordered|temporal", re.IGNORECASE)


class DataloaderTrainShuffle(Rule):
    """Loader of training data that gives the samples in the same order in every epoch.

    ## Why
    Without `shuffle=True` neighbours in the dataset are always neighbours in a batch: with sorted classes each batch
    sees one class.

    ## Example
    ```python
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    train_set = TensorDataset(torch.arange(8.0))
    train_loader = DataLoader(train_set, batch_size=4)
    ```
    ```python
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    train_set = TensorDataset(torch.arange(8.0))
    train_loader = DataLoader(train_set, batch_size=4, shuffle=True)
    ```

    ## Safety
    Unsafe: training changes, which is the intent. Only for datasets that are proven to be read by index, and named or
    made as training data; whoever writes `shuffle=False`, has a sampler, or feeds sequences in order, has decided.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    name = "dataloader-train-shuffle"
    category = Category.DATALOADING
    safety = Safety.UNSAFE
    needles = (b"torch", b"DataLoader", b"rain")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loaders of training data that say nothing of the order."""
        for call in loaders(file):
            if any(option(call, name) is not None for name in ("shuffle", "sampler", "batch_sampler")) or file.roles.in_tests:
                continue
            words = _words(file, call)
            if _is_training(file, call, words) and not _IN_ORDER.search(words) and is_map_style(file, call):
                edit = AddKeyword(file.source.span(call), "shuffle", "True")
                yield self.finding(file, call, "training data comes in the same order in every epoch: pass shuffle=True", edit)


def _words(file: FileModel, call: ast.Call) -> str:
    """What the loader, its dataset and the file around it are called."""
    statement = file.flow.statement(call)
    target = ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    classes = " ".join(definition.name for definition in file.index.all(ast.ClassDef))
    return f"{target} {ast.unparse(call)} {classes}"


def _is_training(file: FileModel, call: ast.Call, words: str) -> bool:
    statement = file.flow.statement(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
    if _TRAIN.search(name):
        return not _NOT_TRAIN.search(name)
    dataset = option(call, "dataset")
    flagged = isinstance(dataset, ast.Call) and any(_says_train(keyword) for keyword in dataset.keywords)
    return flagged and not _NOT_TRAIN.search(words.partition("DataLoader")[0])


def _says_train(keyword: ast.keyword) -> bool:
    value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
    return (keyword.arg == "train" and value is True) or (keyword.arg in {"split", "mode", "phase"} and value == "train")
