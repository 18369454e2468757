"""Loaders with a DistributedSampler that shuffles, and how to reach the sampler from another place."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .loaders import is_evaluation, is_literal, loaders, name_of, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_SAMPLERS = frozenset({"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"})
_SHUFFLE_POSITION = 3


@dataclass(frozen=True, slots=True)
class DistributedLoader:
    """A loader and what it is given as sampler."""

    call: ast.Call
    sampler: ast.expr
    through: str
    """The attributes that lead from the loader to the sampler."""
    others: tuple[ast.expr, ...]
    """What the sampler is on other paths: None, or another sampler."""
    constructor: ast.expr
    """DistributedSampler, as the file writes it."""

    def sampler_at(self, file: FileModel, loop: ast.stmt, read: ast.expr) -> str | None:
        """How to write the sampler in a loop: by its own name where that still holds it there, else through the loader."""
        if isinstance(self.sampler, ast.Name) and self._is_held_by(file, self.sampler, loop):
            return self.sampler.id
        if isinstance(self.sampler, ast.Attribute) and file.functions.enclosing_class(loop) is file.functions.enclosing_class(self.call):
            return file.source.code(self.sampler)
        first = next((node for node in ast.walk(read) if isinstance(node, ast.Name)), None)
        same_function = file.flow.function(read) is file.flow.function(loop)
        visible = first is not None and file.names.visible(first.id, loop) is file.names.scope_of(first)
        own = first is not None and first.id == "self" and file.functions.enclosing_class(loop) is file.functions.enclosing_class(read)
        return f"{file.source.code(read)}.{self.through}" if visible or same_function or own else None

    def _is_held_by(self, file: FileModel, name: ast.Name, loop: ast.stmt) -> bool:
        scope = file.names.scope_of(name)
        return scope is file.names.visible(name.id, loop) and set(file.names.bindings(name)) <= set(file.flow.reaching(name))

    def guard(self, file: FileModel, sampler: str) -> str | None:
        """The test under which the sampler is one that is told the epoch: empty where it always is, None where it can't be written."""
        if not self.others:
            return ""
        if all(is_literal(value, None) for value in self.others) and not sampler.endswith(f".{self.through}"):
            return f"{sampler} is not None"
        first = next(node for node in ast.walk(self.constructor) if isinstance(node, ast.Name))
        everywhere = file.names.scope_of(first) is file.index.scopes[file.tree]
        return f"isinstance({sampler}, {file.source.code(self.constructor)})" if everywhere else None


def distributed_loaders(file: FileModel) -> Iterator[DistributedLoader]:
    """The loaders of training data whose DistributedSampler shuffles."""
    for call in loaders(file):
        sampler, through = option(call, "sampler"), "sampler"
        batches = file.origins.of(option(call, "batch_sampler"))
        if sampler is None and len(batches) == 1 and isinstance(batches[0], ast.Call) and batches[0].args:
            is_torch = file.qualified(batches[0].func) == "torch.utils.data.BatchSampler"
            sampler, through = (batches[0].args[0], "batch_sampler.sampler") if is_torch else (None, "")
        values = file.origins.of(sampler)
        made = [value for value in values if isinstance(value, ast.Call) and file.qualified(value.func) in _SAMPLERS]
        if sampler is None or not made or not all(map(_shuffles, made)) or is_evaluation(name_of(file, call)):
            continue
        others = tuple(value for value in values if value not in made)
        yield DistributedLoader(call, sampler, through, others, made[0].func)


def _shuffles(call: ast.Call) -> bool:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "shuffle"] + call.args[_SHUFFLE_POSITION : _SHUFFLE_POSITION + 1]
    return all(is_literal(value, True) for value in given) and not any(keyword.arg is None for keyword in call.keywords)
