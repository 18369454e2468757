"""Rule `dataloader-worker-seed`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.effects import CHANGES_VALUES, RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .generators import copied_generators
from .worker_functions import Seed, worker_functions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .worker_functions import WorkerFunction

_SEEDERS = frozenset({"numpy.random.seed", "random.seed"})
_BITS = "% 2**32"


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
    effects = (
        RAISES_LESS,
        CHANGES_VALUES,
    )
    needles = (b"torch",)
    pattern = re.compile(rb"worker_init_fn|default_rng|RandomState|Random\(|Generator\(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield seeds of numpy and Python in worker functions, and generators that datasets keep."""
        for worker in worker_functions(file):
            for call in worker.calls(file, _SEEDERS):
                given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in {"seed", "a"})]
                if len(given) == 1:
                    yield from self._seed(file, call, given[0], worker)
        for made, name in copied_generators(file).items():
            message = f"each worker gets a copy of `{name}`, and draws the same numbers: make it in the worker, by worker_init_fn"
            yield self.finding(file, made, message)

    def _seed(self, file: FileModel, call: ast.Call, seed: ast.expr, worker: WorkerFunction) -> Iterator[Finding]:
        kind, code = worker.seed(file, seed), file.source.code(seed)
        if kind is Seed.LONG and file.qualified(call.func) == "numpy.random.seed":
            edit = ReplaceExpression(file.source.span(seed), f"({code}) {_BITS}" if isinstance(seed, ast.BinOp) else f"{code} {_BITS}")
            yield self.finding(file, call, f"numpy takes a seed of 32 bits: take the remainder, `{_BITS}`", edit)
        elif kind is Seed.FIXED and not worker.only_for_evaluation(file):
            message = "every worker (or epoch) draws the same numbers: seed with torch's own, which differs for each"
            yield self.finding(file, call, message, *self._torch_seed(file, seed, worker), safety=Safety.UNSAFE)

    def _torch_seed(self, file: FileModel, seed: ast.expr, worker: WorkerFunction) -> Iterator[Edit]:
        """The edits that take torch's seed; none where the function also serves elsewhere, or seeds torch itself."""
        name = file.spelling("torch.initial_seed", seed)
        if name is None or worker.is_called_elsewhere(file) or worker.seeds_torch(file):
            return
        yield ReplaceExpression(file.source.span(seed), f"{name}() {_BITS}")
        if file.lacks_torch(seed):
            yield NeedImport("torch")
