"""Rule `dataloader-iter-next`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class DataloaderIterNext(Rule):
    """`.next()` on the iterator of a loader, which no iterator has any more.

    ## Why
    Since torch 1.13 the iterator of a DataLoader has only `__next__`, as all iterators of Python 3: `.next()` raises an
    AttributeError.

    ## Example
    ```python
    from torch.utils.data import DataLoader


    def first_batch(loader: DataLoader):
        batches = iter(loader)
        return batches.next()
    ```
    ```python
    from torch.utils.data import DataLoader


    def first_batch(loader: DataLoader):
        batches = iter(loader)
        return next(batches)
    ```

    ## Safety
    Safe: what raised now runs. Only for the results of `iter(…)`; progress bars, prefetchers and linked lists have a
    `next` of their own.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#loading-batched-and-non-batched-data
    """

    name = "dataloader-iter-next"
    category = Category.DATALOADING
    safety = Safety.SAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b".next()", b"iter")
    pattern = re.compile(rb"[dD]ata_?[lL]oader|loader")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls of `next` on what `iter` gave, in files that use loaders."""
        for call in file.methods("next"):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            if receiver is not None and not call.args and not call.keywords and _is_iterator(file, receiver):
                code = file.source.code(receiver)
                edit = ReplaceExpression(file.source.span(call), f"next({code})")
                yield self.finding(file, call, f"iterators have no `next` method: call `next({code})`", edit)


def _is_iterator(file: FileModel, node: ast.expr) -> bool:
    made = [value for value in file.origins.of(node) if not (isinstance(value, ast.Constant) and value.value is None)]
    return bool(made) and all(isinstance(value, ast.Call) and _makes_iterator(file, value) for value in made)


def _makes_iterator(file: FileModel, call: ast.Call) -> bool:
    """`iter(x)`, `x.__iter__()`, or the call of a function of the file that returns one."""
    name = file.qualified(call.func)
    if name == "builtins.enumerate":
        return True
    if name == "builtins.iter" and len(call.args) == 1:
        return _has_plain_iterator(file, call.args[0])
    if isinstance(call.func, ast.Attribute) and call.func.attr == "__iter__":
        return file.kinds.is_kind(call.func.value, Kind.LOADER)
    targets = file.functions.targets(call)
    returned = [value for function in targets for value in file.functions.returns(function)]
    return bool(returned) and all(isinstance(value, ast.Call) and file.qualified(value.func) == "builtins.iter" for value in returned)


def _has_plain_iterator(file: FileModel, iterable: ast.expr) -> bool:
    """Whether iterating gives an object without a `next` method; where the file has classes with one, only loaders are sure to."""
    has_own = any(function.name == "next" for function in file.index.all(ast.FunctionDef))
    return not has_own or file.kinds.is_kind(iterable, Kind.LOADER)
