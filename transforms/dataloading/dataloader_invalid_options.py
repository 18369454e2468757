"""Rule `dataloader-invalid-options`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import RemoveArgument, ReplaceExpression
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .datasets import is_iterable_style, shares_stream
from .loaders import has_no_workers, is_expected_to_fail, is_literal, loaders, number_of_workers, option
from .samplers import is_sampler, may_be_none

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_BESIDE_BATCH_SAMPLER = {"batch_size": (1,), "shuffle": (None, False), "sampler": (None,), "drop_last": (False,)}
"""What may not be given beside a batch_sampler, with the values that are as good as not given."""
_FOR_WORKERS = {"persistent_workers": (False,), "prefetch_factor": (None,), "timeout": (0, 0.0)}
_ORDER = {"shuffle": (None, False), "sampler": (None,)}


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
    effects = (RAISES_LESS,)
    needles = (b"torch", b"DataLoader")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls with options that raise together."""
        for call in loaders(file):
            if is_expected_to_fail(file, call):
                continue
            yield from self._order_of_stream(file, call) if is_iterable_style(file, call) else self._order(file, call)
            yield from self._workers(file, call)
            yield from self._batches(file, call)

    def _order_of_stream(self, file: FileModel, call: ast.Call) -> Iterator[Finding]:
        order = [
            value for name, value in _given(call, _ORDER) if is_literal(value, True) or (name == "sampler" and is_sampler(file, value))
        ]
        if order:
            names = " and ".join(f"`{name}`" for name, value in _given(call, _ORDER) if value in order)
            yield self._without(file, call, order, f"a stream comes in its own order: leave {names} out")
        workers = number_of_workers(file, call) or 0
        if workers > 1 and shares_stream(file, call):
            message = f"each of the {workers} workers reads the whole stream: divide it by torch.utils.data.get_worker_info()"
            yield self.finding(file, call, message)

    def _order(self, file: FileModel, call: ast.Call) -> Iterator[Finding]:
        shuffle, sampler = option(call, "shuffle"), option(call, "sampler")
        if shuffle is None or sampler is None or not is_literal(shuffle, True):
            return
        text = file.source.code(sampler)
        if is_sampler(file, sampler):
            yield self._without(file, call, [shuffle], f"`{text}` decides about the order, and excludes `shuffle`: leave it out")
        elif may_be_none(file, sampler):
            test = f"{text} is None" if isinstance(sampler, (ast.Name, ast.Attribute)) else _condition(file, sampler)
            message = f"`shuffle=True` raises when there is a sampler: shuffle only where `{text}` is None"
            edits = [ReplaceExpression(file.source.span(shuffle), test)] if test else []
            yield self.finding(file, call, message, *edits, safety=Safety.UNSAFE)

    def _workers(self, file: FileModel, call: ast.Call) -> Iterator[Finding]:
        useless = [(name, value) for name, value in _given(call, _FOR_WORKERS) if isinstance(value, ast.Constant)]
        if not useless or not has_no_workers(file, call):
            return
        names = " and ".join(f"`{name}`" for name, _ in useless)
        if is_literal(option(call, "num_workers"), 0):
            yield self._without(file, call, [v for _, v in useless], f"{names} need workers, and num_workers is 0: leave them out")
        else:
            yield self.finding(file, call, f"{names} need workers, and there are none: set num_workers, or leave them out")

    def _batches(self, file: FileModel, call: ast.Call) -> Iterator[Finding]:
        batches = option(call, "batch_sampler")
        clash = [name for name, value in _given(call, _BESIDE_BATCH_SAMPLER) if isinstance(value, ast.Constant) or is_sampler(file, value)]
        if batches is not None and clash and is_sampler(file, batches):
            yield self.finding(file, call, f"`batch_sampler` excludes {', '.join(f'`{name}`' for name in clash)}: say which is meant")

    def _without(self, file: FileModel, call: ast.Call, values: list[ast.expr], message: str) -> Finding:
        span = file.source.span(call)
        if any(value in call.args for value in values):
            return self.finding(file, call, message)
        return self.finding(file, call, message, *(RemoveArgument(span, file.source.span(value)) for value in values))


def _given(call: ast.Call, options: Mapping[str, tuple[object, ...]]) -> list[tuple[str, ast.expr]]:
    """The options that a call gives, other than by a value that stands for nothing."""
    given = [(name, option(call, name), nothing) for name, nothing in options.items()]
    return [(name, value) for name, value, nothing in given if value is not None and not is_literal(value, *nothing)]


def _condition(file: FileModel, sampler: ast.expr) -> str:
    """When `X if test else None` is None, for a test that is a plain name."""
    if not isinstance(sampler, ast.IfExp) or not isinstance(sampler.test, (ast.Name, ast.Attribute)):
        return ""
    test = file.source.code(sampler.test)
    return f"not {test}" if is_literal(sampler.orelse, None) else test if is_literal(sampler.body, None) else ""
