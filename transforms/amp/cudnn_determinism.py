"""Rule `cudnn-determinism`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.rule import Category, Rule, Safety

from .seeds import SEED, redundant_seeds, unseeded_draws
from .settings import is_overruled, may_hold_together, runs_with, settings

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .settings import Setting


class CudnnDeterminism(Rule):
    """cuDNN told to be deterministic and to benchmark at once; seeds that repeat nothing, or say nothing.

    ## Why
    With `benchmark = True` cuDNN times its algorithms in every run and takes the fastest one: which that is differs
    from run to run, and with it the last digits of the results, whatever `deterministic = True` says.

    ## Example
    ```python
    import torch
    import torch.backends.cudnn as cudnn


    def seed_everything(seed):
        torch.manual_seed(seed)
        cudnn.deterministic = True
        cudnn.benchmark = True
    ```
    ```python
    import torch
    import torch.backends.cudnn as cudnn


    def seed_everything(seed):
        torch.manual_seed(seed)
        cudnn.deterministic = True
        cudnn.benchmark = False
    ```

    ## Safety
    Unsafe: convolutions may become slower, which is what determinism costs. Kept where only one of two branches sets
    a flag, and where a flag is set from a variable or set again later. Only reported where benchmarking is also on
    without determinism, next to a seed that asks for runs that repeat, where a second seed repeats
    the first, and where numbers of numpy or `random` are drawn that nothing seeds.

    ## References
    https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    name = "cudnn-determinism"
    category = Category.AMP
    safety = Safety.UNSAFE
    needles = (b"torch",)
    pattern = re.compile(rb"benchmark|manual_seed")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield benchmark flags that contradict determinism or a seed, and seeds without effect."""
        found = settings(file)
        for setting in found:
            if setting.flag == "benchmark" and setting.value and not is_overruled(file, setting, found):
                yield from self._benchmark(file, setting, found)
        for call, text in redundant_seeds(file):
            yield self.finding(file, call, f"`{text}` seeds the GPUs too: this call changes nothing")
        for call, packages in unseeded_draws(file):
            names = " and ".join(f"`{package}`" for package in packages)
            yield self.finding(file, call, f"this does not seed {names}, whose random numbers the file draws: seed that too")

    def _benchmark(self, file: FileModel, setting: Setting, found: list[Setting]) -> Iterator[Finding]:
        claims = [s for s in found if s.flag == "deterministic" and s.value and not is_overruled(file, s, found)]
        together = [claim for claim in claims if may_hold_together(file, claim.statement, setting.statement)]
        always = [claim for claim in together if runs_with(file, claim.statement, setting.statement)]
        sometimes = [claim for claim in together if runs_with(file, setting.statement, claim.statement)]
        if always and setting.literal is not None:
            edit = ReplaceExpression(file.source.span(setting.literal), "False")
            yield self.finding(file, setting.statement, "benchmarking undoes deterministic cuDNN: set `benchmark = False`", edit)
        elif always or sometimes:
            yield self.finding(file, setting.statement, "set `benchmark = False` wherever cuDNN is to be deterministic")
        elif not claims and any(_seeds(file, call, setting) for call in file.calls(SEED)):
            yield self.finding(file, setting.statement, "the seed doesn't make runs repeat while cuDNN benchmarks: set `benchmark = False`")


def _seeds(file: FileModel, call: ast.Call, setting: Setting) -> bool:
    return may_hold_together(file, call, setting.statement) and runs_with(file, call, setting.statement)
