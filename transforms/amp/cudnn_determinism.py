"""Rule `cudnn-determinism`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_FLAGS = "torch.backends.cudnn."


class CudnnDeterminism(Rule):
    """cuDNN that is told to be deterministic, and to choose its algorithms by trial.

    ## Why
    `benchmark = True` times several algorithms and takes the fastest, which may be another one in the next run: results
    then differ, whatever `deterministic` says.

    ## Example
    ```python
    import torch


    def seed_everything(seed):
        torch.manual_seed(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = True
    ```
    ```python
    import torch


    def seed_everything(seed):
        torch.manual_seed(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    ```

    ## Safety
    Unsafe: slower, and reproducible as asked. Only where both flags are set to True in one block; a choice between the
    two, and `benchmark` alone, are kept.

    ## References
    https://docs.pytorch.org/docs/stable/notes/randomness.html#cuda-convolution-benchmarking
    """

    name = "cudnn-determinism"
    category = Category.AMP
    safety = Safety.UNSAFE
    needles = (b"torch", b"deterministic", b"benchmark")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `benchmark = True` in a block that sets `deterministic = True`."""
        flags = [(s, name) for s in file.index.all(ast.Assign) if (name := _flag(file, s))]
        for statement, name in flags:
            block, _ = file.flow.place(statement)
            together = [(s, other) for s, other in flags if any(s is inner for inner in block)]
            deterministic = any(other == "deterministic" and _is_true(s) for s, other in together)
            last = max((s.lineno for s, other in together if other == name), default=0)
            if name == "benchmark" and _is_true(statement) and deterministic and statement.lineno == last:
                edit = ReplaceExpression(file.source.span(statement.value), "False")
                yield self.finding(
                    file, statement, "benchmark chooses algorithms by trial, which deterministic is to prevent: turn it off", edit
                )


def _flag(file: FileModel, statement: ast.Assign) -> str:
    name = file.qualified(statement.targets[0]) or "" if len(statement.targets) == 1 else ""
    return name.removeprefix(_FLAGS) if name in {f"{_FLAGS}benchmark", f"{_FLAGS}deterministic"} else ""


def _is_true(statement: ast.Assign) -> bool:
    return isinstance(statement.value, ast.Constant) and statement.value.value is True
