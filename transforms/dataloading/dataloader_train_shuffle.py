"""Rule `dataloader-train-shuffle`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword
from torchfix_codemods.model import Recording
from torchfix_codemods.rule import Category, Rule, Safety

from .datasets import dataset_values, is_map_style
from .loaders import is_evaluation, is_literal, iterations, loaders, loaders_of, name_of, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_TRAIN = re.compile(r"(^|_)train|(^|_)trn|train(_?(set|data|loader|dl|ds))?$", re.IGNORECASE)
_NOT_TRAIN = re.compile(r"pretrain|eval|val|test|infer|predict|calib|stat|mean|feature", re.IGNORECASE)
_IN_ORDER = re.compile(r"window|series|lstm|seq|bptt|stream|video|ordered|temporal", re.IGNORECASE)
_STATE = re.compile(r"^(h|hx|hc|c|hidden\w*|state\w*|\w+_state|memory|mems)$")


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
    made as training data; whoever writes `shuffle=False`, has a sampler, or feeds sequences in order, has decided. Shuffled data of evaluation is
    reported.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    name = "dataloader-train-shuffle"
    category = Category.DATALOADING
    safety = Safety.UNSAFE
    needles = (b"torch", b"DataLoader")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loaders of training data that say nothing of the order, and shuffled ones of evaluation."""
        for call in loaders(file):
            if file.roles.in_tests:
                return
            name = name_of(file, call)
            if is_literal(option(call, "shuffle"), True) and _is_for_evaluation(file, call, name) and not _is_only_sampled(file, call):
                message = "evaluation needs no shuffling, and its results come back in another order each time: leave shuffle out"
                yield self.finding(file, call, message)
            elif (
                _has_no_order(call) and _is_for_training(file, call, name) and is_map_style(file, call) and not _is_fed_in_order(file, call)
            ):
                edit = AddKeyword(file.source.span(call), "shuffle", "True")
                yield self.finding(file, call, "training data comes in the same order in every epoch: pass shuffle=True", edit)


def _has_no_order(call: ast.Call) -> bool:
    return all(option(call, name) is None for name in ("shuffle", "sampler", "batch_sampler"))


def _is_for_training(file: FileModel, call: ast.Call, name: str) -> bool:
    """By the loader's name; where that says nothing, by the name of the dataset and the split it is made with."""
    if _NOT_TRAIN.search(name):
        return False
    return bool(_TRAIN.search(name)) or _dataset_is(file, call, _TRAIN, True, "train")


def _is_for_evaluation(file: FileModel, call: ast.Call, name: str) -> bool:
    if "train" in name.lower():
        return False
    return is_evaluation(name) or (not name.startswith("make") and _dataset_is(file, call, None, False, "test", "val", "valid"))


def _is_only_sampled(file: FileModel, call: ast.Call) -> bool:
    """Whether the loader only serves to draw some random batch, by `next(iter(loader))`."""
    places = [place for place, loader in iterations(file) if loader is call]
    return bool(places) and all(isinstance(place, ast.Call) for place in places)


def _dataset_is(file: FileModel, call: ast.Call, pattern: re.Pattern[str] | None, flag: bool, *splits: str) -> bool:
    dataset = option(call, "dataset")
    name = dataset.id if isinstance(dataset, ast.Name) else dataset.attr if isinstance(dataset, ast.Attribute) else ""
    if pattern and pattern.search(name) and not _NOT_TRAIN.search(name):
        return True
    made = [value for value in dataset_values(file, dataset) if isinstance(value, ast.Call)]
    return bool(made) and all(any(_says(keyword, flag, splits) for keyword in value.keywords) for value in made)


def _says(keyword: ast.keyword, flag: bool, splits: tuple[str, ...]) -> bool:
    if keyword.arg in {"train", "is_train", "training"}:
        return is_literal(keyword.value, flag)
    return keyword.arg in {"split", "mode", "phase", "subset", "image_set"} and is_literal(keyword.value, *splits)


def _is_fed_in_order(file: FileModel, call: ast.Call) -> bool:
    """Whether the order means something: sequences by name, a state carried from batch to batch, or nothing is trained."""
    classes = " ".join(definition.name for definition in file.index.all(ast.ClassDef))
    if _IN_ORDER.search(f"{name_of(file, call)} {ast.unparse(call)} {classes}"):
        return True
    loops = [loop for loop in file.index.all(ast.For) if call in loaders_of(file, loop.iter)]
    return any(map(_carries_state, loops)) or (bool(loops) and all(file.gradients.recording(loop) is Recording.OFF for loop in loops))


def _carries_state(loop: ast.For) -> bool:
    """`out, hidden = net(x, hidden)` in the loop."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            given = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
            taken = {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            if any(_STATE.match(name) for name in given & taken):
                return True
    return False
