"""Rule `dataloader-iter-next`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.model.flow import Form
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
    needles = (b"torch", b".next()", b"iter(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls of `next` on what `iter` gave, in files that use loaders."""
        if b"DataLoader" not in file.source.data and b"oader" not in file.source.data:
            return
        for call in file.methods("next"):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            if receiver is not None and not call.args and not call.keywords and _is_iterator(file, receiver):
                code = file.source.code(receiver)
                edit = ReplaceExpression(file.source.span(call), f"next({code})")
                yield self.finding(file, call, f"iterators have no `next` method: call `next({code})`", edit)


def _is_iterator(file: FileModel, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return file.qualified(node.func) == "builtins.iter" and len(node.args) == 1
    if isinstance(node, ast.Name):
        definitions = [file.flow.definition(binding) for binding in file.flow.reaching(node)]
        if any(d.form is not Form.ASSIGNED or d.path for d in definitions):
            return False
        values = [d.value for d in definitions]
    else:
        definition = file.functions.class_of(node.value) if isinstance(node, ast.Attribute) else None
        values = list(file.classes.values(definition, node.attr)) if definition and isinstance(node, ast.Attribute) else []
    made = [v for v in values if not (isinstance(v, ast.Constant) and v.value is None)]
    return bool(made) and all(isinstance(v, ast.Call) and _is_iterator(file, v) for v in made)
