"""Whether two expressions stand for the same object: names and attribute chains, through aliases and arguments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from . import torch_api as api
from .facts import Kind
from .flow import Form

if TYPE_CHECKING:
    from .index import Function
    from .kinds import Kinds

_DEPTH = 8


class Identity(NamedTuple):
    """An object: what anchors it (the scope and name of a variable, or a class for its `self`), and attributes."""

    anchor: tuple[ast.AST, str]
    attributes: tuple[str, ...] = ()

    def attribute(self, name: str) -> Identity:
        """The object that this one holds under `name`."""
        return Identity(self.anchor, (*self.attributes, name))

    def is_part_of(self, other: Identity) -> bool:
        """Whether this object is the other, or hangs below it."""
        return self.anchor == other.anchor and self.attributes[: len(other.attributes)] == other.attributes


class Identities:
    """Identities of the expressions of one file; None where they can't be told."""

    def __init__(self, kinds: Kinds, *, through_calls: bool = True) -> None:
        self._kinds = kinds
        self._through_calls = through_calls
        """Whether a parameter stands for what its only caller passes; else it stands for itself."""

    def of(self, node: ast.expr | None, depth: int = _DEPTH) -> Identity | None:
        """The object an expression stands for."""
        if node is None or depth == 0:
            return None
        if isinstance(node, ast.Name):
            return self._name(node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner = self.of(node.value, depth - 1)
            return owner.attribute(f"[{node.slice.value!r}]") if owner else None
        return None

    def _name(self, name: ast.Name, depth: int) -> Identity | None:
        scope = self._kinds.names.scope_of(name)
        if scope is None:
            return None
        if name.id == "self" and isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            definition = self._kinds.classes.owner(scope.node)
            if definition:
                return Identity((definition, "self"))
        bindings = self._kinds.flow.reaching(name)
        if len(bindings) == 1:
            form, value, path = self._kinds.flow.definition(bindings[0])
            if form is Form.ASSIGNED and not path and isinstance(value, (ast.Name, ast.Attribute)):
                alias = self.of(value, depth - 1)
                if alias:
                    return alias
            passed = self._passed(bindings[0], depth) if form is Form.PARAMETER else None
            if passed:
                return passed
        return Identity((scope.node, name.id))

    def _passed(self, binding: ast.AST, depth: int) -> Identity | None:
        """What the only call in the file passes for a parameter."""
        function = self._kinds.index.parents[binding]
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(binding, ast.arg) or not self._through_calls:
            return None
        calls = self._kinds.functions.calls_to(function)
        if len(calls) != 1 or self._kinds.flow.function(calls[0]) is function:
            return None
        return self.of(self._kinds.functions.argument(calls[0], function, binding.arg), depth - 1)

    def _attribute(self, node: ast.Attribute, depth: int) -> Identity | None:
        owner = self.of(node.value, depth - 1)
        definition = self._kinds.functions.class_of(node.value)
        if definition is None:
            return owner.attribute(node.attr) if owner else None
        source = self._given(definition, node.attr, depth)
        if source:
            return source
        anchor = Identity((definition, "self"))
        return anchor.attribute(node.attr)

    def _given(self, definition: ast.ClassDef, attribute: str, depth: int) -> Identity | None:
        """The object that the one constructor call of the file passes for `self.attribute = parameter`."""
        values = self._kinds.classes.values(definition, attribute)
        init = self._kinds.classes.method(definition, "__init__")
        if len(values) != 1 or init is None or not isinstance(values[0], ast.Name) or not self._through_calls:
            return None
        if values[0].id not in {a.arg for a in init.args.args}:
            return None
        calls = self._kinds.functions.calls_to(init)
        return self.of(self._kinds.functions.argument(calls[0], init, values[0].id), depth - 1) if len(calls) == 1 else None

    def _call(self, call: ast.Call, depth: int) -> Identity | None:
        """Methods that return their receiver, and wrappers that stand for their argument."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in api.KEEPS_MODULE:
            fact = self._kinds.fact(call.func.value)
            return self.of(call.func.value, depth - 1) if fact and fact.kind is Kind.MODULE else None
        if self._kinds.names.qualified(call.func) in api.KEY_CHANGING_WRAPPERS and call.args:
            return self.of(call.args[0], depth - 1)
        return None

    def seen_by_caller(self, identity: Identity, function: Function, call: ast.Call) -> Identity | None:
        """The same object, named as the caller of `function` names it; None when only the callee can name it."""
        scope, name = identity.anchor
        if scope is not function:
            return identity
        passed = self.of(self._kinds.functions.argument(call, function, name))
        return Identity(passed.anchor, passed.attributes + identity.attributes) if passed else None
