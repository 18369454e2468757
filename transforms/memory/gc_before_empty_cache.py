"""Rule `gc-before-empty-cache`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import DeleteStatement, InsertAfter
from torchfix_codemods.model import Happening
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class GcBeforeEmptyCache(Rule):
    """`empty_cache` before the objects are gone whose memory it is to give back.

    ## Why
    `empty_cache` returns only blocks that nothing uses: what `del` and `gc.collect()` free afterwards stays cached. It
    doesn't cure a leak either: inside a training loop it only makes the next allocation slow.

    ## Example
    ```python
    import gc

    import torch


    def free(big):
        torch.cuda.empty_cache()
        del big
        gc.collect()
    ```
    ```python
    import gc

    import torch


    def free(big):
        del big
        gc.collect()
        torch.cuda.empty_cache()
    ```

    ## Safety
    Safe: no value is involved. Only for neighbouring statements, and not in exception handlers. `empty_cache` in each
    iteration of a training loop is reported.

    ## References
    https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    """

    name = "gc-before-empty-cache"
    category = Category.MEMORY
    safety = Safety.SAFE
    needles = (b"torch", b"empty_cache")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls that come too early, and those of each iteration of a training loop."""
        for call in file.calls("torch.cuda.empty_cache"):
            statement = file.parent(call)
            if not isinstance(statement, ast.Expr):
                continue
            block, index = file.flow.place(statement)
            last = index
            while last + 1 < len(block) and _frees(file, block[last + 1]):
                last += 1
            handled = any(isinstance(ancestor, ast.ExceptHandler) for ancestor in file.flow.ancestors(statement))
            if last > index and not handled:
                message = "memory is freed after the cache was emptied: empty it last"
                code = file.source.code(call)
                edits = (DeleteStatement(file.source.span(statement)), InsertAfter(file.source.span(block[last]), code))
                yield self.finding(file, call, message, *edits)
            elif not handled and _is_in_batch_loop(file, statement):
                yield self.finding(
                    file, call, "emptying the cache in each iteration cures no leak, and slows allocation down: find what is kept"
                )


def _frees(file: FileModel, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Delete):
        return True
    return (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and file.qualified(statement.value.func) == "gc.collect"
    )


def _is_in_batch_loop(file: FileModel, statement: ast.Expr) -> bool:
    """Whether the statement stands in the very block of the loop that runs a backward."""
    loop = file.parent(statement)
    if not isinstance(loop, (ast.For, ast.While)):
        return False
    return any(e.happening is Happening.BACKWARD for e in file.training.events(loop.body, depth=0))
