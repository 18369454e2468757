"""Which tensors are leaves that require a gradient: autograd forbids to write these in place."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from . import torch_api as api
from .definition_kinds import iterated
from .facts import Kind
from .flow import Form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .gradients import Gradients
    from .kinds import Kinds

_DEPTH = 6


class Leaves:
    """The leaves that require a gradient in one file; only proven ones."""

    def __init__(self, kinds: Kinds, gradients: Gradients) -> None:
        self._kinds, self._gradients = kinds, gradients

    def is_leaf(self, node: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether an expression is proven to be a leaf that requires a gradient."""
        if not depth:
            return False
        if isinstance(node, ast.Name):
            return self._name(node, depth - 1)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, depth - 1)
        return isinstance(node, ast.Call) and self._call(node, depth - 1)

    def was_leaf(self, target: ast.Name) -> bool:
        """Whether a name that is bound anew was such a leaf before, on every path."""
        origins = [binding for binding in self._origins(target) if binding is not target]
        return bool(origins) and all(self._binding(binding, target, _DEPTH) for binding in origins)

    def _call(self, call: ast.Call, depth: int) -> bool:
        name = self._kinds.names.qualified(call.func)
        flag = next((keyword.value for keyword in call.keywords if keyword.arg == "requires_grad"), None)
        if name == "torch.nn.Parameter":
            return _is_true(flag) or (flag is None and len(call.args) < 2)
        if name in api.FACTORIES or name == "torch.autograd.Variable":
            return _is_true(flag)
        if not isinstance(call.func, ast.Attribute) or not _turns_on(call):
            return False
        return self._is_free(call.func.value) or self.is_leaf(call.func.value, depth)

    def _is_free(self, node: ast.expr) -> bool:
        """Whether a tensor has no history, so that it becomes a leaf when it is told to require a gradient."""
        return self._kinds.is_tensor(node) and self._gradients.tracked(node) is False

    def _name(self, name: ast.Name, depth: int) -> bool:
        origins = self._origins(name)
        return bool(origins) and all(self._binding(binding, name, depth) for binding in origins)

    def _origins(self, name: ast.Name) -> list[ast.AST]:
        """The bindings that gave a name the object that it holds: an augmented assignment in place gives none."""
        origins: dict[ast.AST, None] = {}
        todo, seen = [name], {name}
        while todo:
            for binding in self._kinds.flow.reaching(todo.pop()):
                if self._kinds.flow.definition(binding).form is not Form.AUGMENTED:
                    origins[binding] = None
                elif isinstance(binding, ast.Name) and binding not in seen:
                    seen.add(binding)
                    todo.append(binding)
        return list(origins)

    def _binding(self, binding: ast.AST, name: ast.Name, depth: int) -> bool:
        form, value, path = self._kinds.flow.definition(binding)
        if not depth or name.id in self._frozen_names:
            return False
        if form is Form.PARAMETER and isinstance(binding, ast.arg):
            return self._parameter(binding, depth, self.is_leaf)
        if value is None:
            return False
        if form is Form.ITERATED:
            fact = iterated(self._kinds, value, path)
            is_parameter = fact is not None and fact.kind is Kind.PARAMETER and fact.proven and not self._freezes
            return is_parameter or (not path and self._elements_are_leaves(value, depth))
        if form is not Form.ASSIGNED or path:
            return False
        return self.is_leaf(value, depth) or (self._is_free(value) and self._is_turned_on(binding, name))

    def _parameter(self, binding: ast.arg, depth: int, holds: Callable[[ast.expr, int], bool]) -> bool:
        """Whether every call in the file passes what holds; without a call, what the annotation says."""
        function = self._kinds.index.parents[binding]
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        calls = self._kinds.functions.calls_to(function)
        if not calls:
            fact = self._kinds.fact(binding)
            return fact is not None and fact.kind is Kind.PARAMETER and fact.proven and not self._freezes
        passed = [self._kinds.functions.argument(call, function, binding.arg) for call in calls]
        return all(value is not None and holds(value, depth - 1) for value in passed)

    def _elements_are_leaves(self, node: ast.expr, depth: int) -> bool:
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and all(self.is_leaf(element, depth) for element in node.elts)
        if not isinstance(node, ast.Name) or not depth:
            return False
        return all(self._sequence(binding, depth) for binding in self._kinds.flow.reaching(node)) and bool(self._kinds.flow.reaching(node))

    def _sequence(self, binding: ast.AST, depth: int) -> bool:
        form, value, path = self._kinds.flow.definition(binding)
        if form is Form.PARAMETER and isinstance(binding, ast.arg):
            return self._parameter(binding, depth, self._elements_are_leaves)
        return form is Form.ASSIGNED and value is not None and not path and self._elements_are_leaves(value, depth - 1)

    def _attribute(self, node: ast.Attribute, depth: int) -> bool:
        definition = self._kinds.functions.class_of(node.value)
        values = self._kinds.classes.values(definition, node.attr) if definition else []
        if values:
            made = [value for value in values if not _is_augmented(value)]
            return bool(made) and all(self.is_leaf(value, depth) for value in made) and node.attr not in self._frozen_names
        fact = self._kinds.fact(node)
        return fact is not None and fact.kind is Kind.PARAMETER and fact.proven and not self._freezes

    def _is_turned_on(self, binding: ast.AST, name: ast.Name) -> bool:
        """Whether `name.requires_grad_()` or `name.requires_grad = True` is sure to have run between a binding and a use."""
        after = self._kinds.flow.statement(binding).lineno
        return any(statement.lineno > after and _is_turning_on(statement, name.id) for statement in self._before(name))

    def _before(self, node: ast.AST) -> Iterator[ast.stmt]:
        """The statements that are sure to have run before a node, in its own function."""
        statement = self._kinds.flow.statement(node)
        while True:
            block, index = self._kinds.flow.place(statement)
            yield from block[:index]
            parent = self._kinds.index.parents[statement]
            if not isinstance(parent, ast.stmt) or isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                return
            statement = parent

    @property
    def _freezes(self) -> bool:
        return bool(self._frozen_names)

    @cached_property
    def _frozen_names(self) -> frozenset[str]:
        """The names of what the file may tell not to require a gradient."""
        owners = [_owner(node, self._kinds.index.parents[node]) for node in self._kinds.index.all(ast.Attribute)]
        return frozenset(_last_name(owner) for owner in owners if owner is not None)


def _owner(node: ast.Attribute, parent: ast.AST) -> ast.expr | None:
    """What `x.requires_grad = flag`, `x.requires_grad_(flag)` or `x.detach_()` changes, unless the flag is a plain True."""
    if node.attr == "requires_grad" and isinstance(node.ctx, ast.Store):
        return None if isinstance(parent, ast.Assign) and _is_true(parent.value) else node.value
    if node.attr == "requires_grad_" and isinstance(parent, ast.Call):
        return None if _turns_on(parent) else node.value
    return node.value if node.attr == "detach_" else None


def _is_augmented(value: ast.expr) -> bool:
    """Whether a value that a class assigns is the same object, changed in place: `self.w *= 2`."""
    return isinstance(value, ast.BinOp) and isinstance(getattr(value.left, "ctx", None), ast.Store)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _turns_on(call: ast.Call) -> bool:
    """Whether a call is `x.requires_grad_()` or `x.requires_grad_(True)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "requires_grad_":
        return False
    flags = [*call.args, *(keyword.value for keyword in call.keywords)]
    return not flags or (len(flags) == 1 and _is_true(flags[0]))


def _is_turning_on(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _turns_on(statement.value):
        return ast.unparse(statement.value.func) == f"{name}.requires_grad_"
    return isinstance(statement, ast.Assign) and _is_true(statement.value) and ast.unparse(statement.targets[0]) == f"{name}.requires_grad"
