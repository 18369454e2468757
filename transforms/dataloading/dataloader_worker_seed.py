"""Rule `dataloader-worker-seed`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

from .loaders import option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_LOADER = "torch.utils.data.DataLoader"
_GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "torch.Generator"})
_SEEDED = ("initial_seed", "worker_info", ".seed", "base_seed")


class DataloaderWorkerSeed(Rule):
    """Workers of a loader that draw the same random numbers, or fail to be seeded.

    ## Why
    `np.random.seed` takes 32 bits, and `torch.initial_seed()` of a worker has 64: it raises. A constant seed gives every
    worker the same augmentation, in every epoch; so does `seed + worker_id` for the epochs. (Without any seeding torch
    seeds Python, numpy and itself per worker and epoch since 1.9.)

    ## Example
    ```python
    import numpy as np
    import torch
    from torch.utils.data import DataLoader


    def seed_worker(worker_id):
        np.random.seed(torch.initial_seed())


    def loader(dataset):
        return DataLoader(dataset, num_workers=2, worker_init_fn=seed_worker)
    ```
    ```python
    import numpy as np
    import torch
    from torch.utils.data import DataLoader


    def seed_worker(worker_id):
        np.random.seed(torch.initial_seed() % 2**32)


    def loader(dataset):
        return DataLoader(dataset, num_workers=2, worker_init_fn=seed_worker)
    ```

    ## Safety
    Safe for a seed that is too long: what raised now runs. Unsafe for one that doesn't depend on torch's seed: other
    numbers are drawn, as intended. A generator that a dataset makes for itself is copied into each worker: reported.

    ## References
    https://docs.pytorch.org/docs/stable/notes/randomness.html#dataloader
    """

    name = "dataloader-worker-seed"
    category = Category.DATALOADING
    safety = Safety.SAFE
    needles = (b"torch",)

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield seeds of numpy in worker functions, and generators that datasets keep."""
        for function in dict.fromkeys(_worker_functions(file)):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and file.qualified(node.func) == "numpy.random.seed" and len(node.args) == 1:
                    yield from self._seed(file, node, node.args[0])
        for definition in file.index.all(ast.ClassDef):
            if "torch.utils.data.Dataset" in set(file.classes.origins(definition)):
                yield from self._generator(file, definition)

    def _seed(self, file: FileModel, call: ast.Call, seed: ast.expr) -> Iterator[Finding]:
        name = file.spelling("torch.initial_seed", call)
        if isinstance(seed, ast.Call) and file.qualified(seed.func) == "torch.initial_seed":
            edit = ReplaceExpression(file.source.span(seed), f"{file.source.code(seed)} % 2**32")
            yield self.finding(file, call, "numpy takes a seed of 32 bits: take the remainder, `% 2**32`", edit)
        elif name is not None and not _depends_on_torch(file, seed):
            edits: list[Edit] = [
                ReplaceExpression(file.source.span(seed), f"{name}() % 2**32"),
                *([NeedImport("torch")] if file.lacks_torch(call) else []),
            ]
            message = "every worker (or epoch) draws the same numbers: seed with torch's own, which differs for each"
            yield self.finding(file, call, message, *edits, safety=Safety.UNSAFE)

    def _generator(self, file: FileModel, definition: ast.ClassDef) -> Iterator[Finding]:
        init, getter = (file.classes.method(definition, name) for name in ("__init__", "__getitem__"))
        read = {n.attr for n in ast.walk(getter) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)} if getter else set()
        for node in ast.walk(init) if init else ():
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and file.qualified(node.value.func) in _GENERATORS:
                target = node.targets[0]
                if isinstance(target, ast.Attribute) and target.attr in read:
                    message = f"each worker gets a copy of `self.{target.attr}`, and draws the same numbers: make it in the worker, by worker_init_fn"
                    yield self.finding(file, node, message)


def _worker_functions(file: FileModel) -> Iterator[ast.AST]:
    """What is given to a DataLoader as worker_init_fn: a function of the file, or a lambda."""
    for call in file.calls(_LOADER):
        given = option(call, "worker_init_fn")
        if isinstance(given, ast.Lambda):
            yield given
        elif isinstance(given, ast.Name):
            yield from (b for b in file.names.bindings(given) if isinstance(b, FUNCTIONS))


def _depends_on_torch(file: FileModel, seed: ast.expr) -> bool:
    """Whether a seed comes from torch, or is left to the system (None)."""
    text = ast.unparse(seed)
    for node in ast.walk(seed):
        if isinstance(node, ast.Name):
            values = [file.flow.definition(binding).value for binding in file.names.bindings(node)]
            text += " ".join(ast.unparse(value) for value in values if value is not None)
    return text == "None" or any(word in text for word in _SEEDED)
