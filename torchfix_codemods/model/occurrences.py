"""Where names are read: the occurrences of a local, and reads that are written alike."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .index import Function, Index, Scope
    from .names import Names

TELLING_METHODS = frozenset({"eval", "train", "parameters", "state_dict", "named_parameters", "zero_grad", "step"})
"""Methods that tell what their receiver is."""


class Occurrences:
    """The reads of names in one file."""

    def __init__(self, index: Index, names: Names) -> None:
        self.index, self.names = index, names

    def uses(self, function: Function, name: str) -> list[ast.Name]:
        """The places where a function (or what is nested in it) reads its own local `name`."""
        return self._uses.get((self.index.scopes[function], name), [])

    @cached_property
    def _uses(self) -> dict[tuple[Scope, str], list[ast.Name]]:
        uses: dict[tuple[Scope, str], list[ast.Name]] = {}
        for name in self.index.all(ast.Name):
            scope = self.names.scope_of(name) if isinstance(name.ctx, ast.Load) else None
            if scope is not None:
                uses.setdefault((scope, name.id), []).append(name)
        return uses

    def same_reads(self, node: ast.Name | ast.Attribute) -> list[ast.expr]:
        """Every read that is written like this one; empty for most, at once: those on which no telling method is called."""
        return self._telling.get(_key(node), [])

    @cached_property
    def _telling(self) -> dict[tuple[str, ...], list[ast.expr]]:
        methods = [call.func for call in self.index.all(ast.Call)] + [statement.value for statement in self.index.all(ast.Expr)]
        told = {_key(method.value) for method in methods if isinstance(method, ast.Attribute) and method.attr in TELLING_METHODS}
        reads: dict[tuple[str, ...], list[ast.expr]] = {}
        nodes: list[ast.Name | ast.Attribute] = [*self.index.all(ast.Name), *self.index.all(ast.Attribute)]
        for node in nodes:
            key = _key(node) if isinstance(node.ctx, ast.Load) else ()
            if key and key in told:
                reads.setdefault(key, []).append(node)
        return reads

    def reads(self, name: str) -> list[ast.Name]:
        """Every read of a name in the file, whatever it refers to."""
        return self._reads.get(name, [])

    @cached_property
    def _reads(self) -> dict[str, list[ast.Name]]:
        reads: dict[str, list[ast.Name]] = {}
        for name in self.index.all(ast.Name):
            if isinstance(name.ctx, ast.Load):
                reads.setdefault(name.id, []).append(name)
        return reads


def _key(node: ast.expr) -> tuple[str, ...]:
    """How a name or `name.attribute` is written."""
    if isinstance(node, ast.Name):
        return (node.id,)
    return (node.value.id, node.attr) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ()
