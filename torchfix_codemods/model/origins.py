"""The expressions that a value may come from, through names, attributes, choices and literal containers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .flow import Form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .kinds import Kinds

_DEPTH = 4
"""Steps from name to name that are followed."""


class Origins:
    """Where the values of one file come from."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def of(self, node: ast.expr | None, depth: int = _DEPTH) -> tuple[ast.expr, ...]:
        """Every expression that gives `node` its value; empty when one of them is out of sight."""
        if node is None or depth < 0:
            return ()
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value, depth)
        if isinstance(node, ast.IfExp):
            return self._all((node.body, node.orelse), depth)
        if isinstance(node, ast.Name):
            return self._name(node, depth)
        if isinstance(node, ast.Attribute) and self._kinds.names.qualified(node) is None:
            return self._attribute(node, depth)
        if isinstance(node, ast.Subscript):
            return self._element(node, depth)
        return (node,)

    def _all(self, nodes: tuple[ast.expr, ...], depth: int) -> tuple[ast.expr, ...]:
        parts = [self.of(node, depth) for node in nodes]
        return tuple(dict.fromkeys(value for part in parts for value in part)) if all(parts) else ()

    def _name(self, name: ast.Name, depth: int) -> tuple[ast.expr, ...]:
        if self._kinds.names.qualified(name) is not None:
            return (name,)
        definitions = [self._kinds.flow.definition(binding) for binding in self._kinds.flow.reaching(name)]
        values = tuple(d.value for d in definitions if d.value is not None and d.form is Form.ASSIGNED and not d.path)
        return self._all(values, depth - 1) if len(values) == len(definitions) else ()

    def _attribute(self, node: ast.Attribute, depth: int) -> tuple[ast.expr, ...]:
        definition = self._kinds.functions.class_of(node.value)
        if definition is None or self._is_set_from_outside(node.attr):
            return ()
        return self._all(tuple(self._kinds.classes.values(definition, node.attr)), depth - 1)

    def _is_set_from_outside(self, name: str) -> bool:
        stores = (node for node in self._kinds.index.all(ast.Attribute) if node.attr == name and isinstance(node.ctx, ast.Store))
        return any(not (isinstance(node.value, ast.Name) and node.value.id == "self") for node in stores)

    def _element(self, node: ast.Subscript, depth: int) -> tuple[ast.expr, ...]:
        """`loaders["train"]` is what stands there in the literal dictionary that `loaders` holds."""
        containers = self.of(node.value, depth - 1)
        if len(containers) != 1 or self._is_filled_later(node.value):
            return ()
        return self._all(tuple(_elements(containers[0], node.slice)), depth - 1)

    def _is_filled_later(self, container: ast.expr) -> bool:
        stores = (node for node in self._kinds.index.all(ast.Subscript) if not isinstance(node.ctx, ast.Load))
        return any(ast.unparse(node.value) == ast.unparse(container) for node in stores)


def _elements(container: ast.expr, key: ast.expr) -> Iterator[ast.expr]:
    """What may stand under a key; all values where the key is known only when the code runs."""
    if isinstance(container, (ast.DictComp, ast.ListComp)):
        yield container.value if isinstance(container, ast.DictComp) else container.elt
    elif isinstance(container, ast.Dict):
        for name, value in zip(container.keys, container.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(name, ast.Constant)) or key.value == name.value:
                yield value
    elif isinstance(container, (ast.List, ast.Tuple)):
        index = key.value if isinstance(key, ast.Constant) and isinstance(key.value, int) else None
        yield from container.elts if index is None else container.elts[index : index + 1]
