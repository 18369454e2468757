"""Rule `dataloader-invalid-options`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import RemoveArgument, ReplaceExpression
from torchfix_codemods.rule import Category, Rule, Safety

from .loaders import has_no_workers, is_iterable_style, is_literal, loaders, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_BESIDE_BATCH_SAMPLER = ("batch_size", "shuffle", "sampler", "drop_last")


class DataloaderInvalidOptions(Rule):
    """Options of a DataLoader that exclude each other.

    ## Why
    A sampler decides about the order, so that `shuffle=True` beside it raises; `prefetch_factor` and
    `persistent_workers` need workers; a stream can't be shuffled.

    ## Example
    ```python
    from torch.utils.data import DataLoader, SubsetRandomSampler


    def loader(dataset, indices):
        return DataLoader(dataset, shuffle=True, sampler=SubsetRandomSampler(indices))
    ```
    ```python
    from torch.utils.data import DataLoader, SubsetRandomSampler


    def loader(dataset, indices):
        return DataLoader(dataset, sampler=SubsetRandomSampler(indices))
    ```

    ## Safety
    Safe: what raised now runs, in the order that the sampler gives. Unsafe where the sampler may be None: shuffling then
    depends on it. Reported where it isn't clear which of two options is meant.

    ## References
    https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    name = "dataloader-invalid-options"
    category = Category.DATALOADING
    safety = Safety.SAFE
    needles = (b"torch", b"DataLoader")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls with options that raise together."""
        for call in loaders(file):
            yield from self._order(file, call)
            yield from self._workers(file, call)
            given = option(call, "batch_sampler")
            clash = [
                name
                for name in _BESIDE_BATCH_SAMPLER
                if (value := option(call, name)) is not None and not is_literal(value, None, False, 1)
            ]
            if given is not None and not is_literal(given, None) and clash:
                yield self.finding(file, call, f"`batch_sampler` excludes {', '.join(f'`{name}`' for name in clash)}: say which is meant")

    def _order(self, file: FileModel, call: ast.Call) -> Iterator[Finding]:
        shuffle, sampler = option(call, "shuffle"), option(call, "sampler")
        if not is_literal(shuffle, True) or shuffle is None:
            return
        if is_iterable_style(file, call):
            yield self._without(file, call, [shuffle], "a stream can't be shuffled by its loader: leave `shuffle` out")
        elif sampler is not None and not is_literal(sampler, None):
            text = file.source.code(sampler)
            if _is_sampler(file, sampler):
                yield self._without(file, call, [shuffle], f"`{text}` decides about the order, and excludes `shuffle`: leave it out")
            elif _may_be_none(file, sampler):
                edit = ReplaceExpression(file.source.span(shuffle), f"{text} is None")
                message = f"`shuffle=True` raises when there is a sampler: shuffle only where `{text}` is None"
                yield self.finding(file, call, message, edit, safety=Safety.UNSAFE)

    def _workers(self, file: FileModel, call: ast.Call) -> Iterator[Finding]:
        if not has_no_workers(call):
            return
        persistent, prefetch = option(call, "persistent_workers"), option(call, "prefetch_factor")
        useless: list[ast.expr] = [
            v for v in (persistent, prefetch) if v is not None and isinstance(v, ast.Constant) and v.value not in {None, False}
        ]
        if useless and option(call, "num_workers") is None:
            yield self.finding(file, call, "these options need workers, and there are none: set num_workers, or leave them out")
        elif useless:
            yield self._without(file, call, useless, "these options need workers, and num_workers is 0: leave them out")

    def _without(self, file: FileModel, call: ast.Call, values: list[ast.expr], message: str) -> Finding:
        span = file.source.span(call)
        if any(value in call.args for value in values):
            return self.finding(file, call, message)
        return self.finding(file, call, message, *(RemoveArgument(span, file.source.span(value)) for value in values))


def _values(file: FileModel, node: ast.expr) -> list[ast.expr | None]:
    """What a name may hold; a literal or call stands for itself."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if not isinstance(node, ast.Name):
        return [node]
    values = [file.flow.definition(binding).value for binding in file.names.bindings(node)]
    return [inner for value in values for inner in ([value.body, value.orelse] if isinstance(value, ast.IfExp) else [value])]


def _is_sampler(file: FileModel, node: ast.expr) -> bool:
    values = _values(file, node)
    return bool(values) and all(isinstance(v, ast.Call) and _makes_sampler(file, v) for v in values)


def _makes_sampler(file: FileModel, call: ast.Call) -> bool:
    name = file.qualified(call.func) or ast.unparse(call.func)
    return name.rpartition(".")[2].endswith("Sampler")


def _may_be_none(file: FileModel, node: ast.expr) -> bool:
    values = _values(file, node)
    made = [v for v in values if isinstance(v, ast.Call) and _makes_sampler(file, v)]
    return isinstance(node, ast.Name) and bool(made) and len(made) + sum(is_literal(v, None) for v in values) == len(values) > len(made)
