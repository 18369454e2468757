"""Calls between the functions of a file: who is called, by whom, with which arguments."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from .flow import Form
from .index import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .classes import Classes
    from .flow import Flow
    from .index import Function, Index
    from .kinds import Kinds
    from .names import Names

_ALIAS_DEPTH = 3
"""Assignments from name to name that a call is followed through."""


class Functions:
    """The functions defined in one file, and the calls among them."""

    kinds: Kinds
    """Set by the file model: methods are resolved through the class of their receiver."""

    def __init__(self, index: Index, names: Names, flow: Flow, classes: Classes) -> None:
        self._index, self._names, self._flow, self._classes = index, names, flow, classes
        self._targets: dict[ast.Call, tuple[Function, ...]] = {}
        self._returns: dict[Function, list[ast.expr | None]] = {}

    @cached_property
    def _calls_by_name(self) -> dict[str, list[ast.Call]]:
        calls: dict[str, list[ast.Call]] = defaultdict(list)
        for call in self._index.all(ast.Call):
            name = _last_name(call.func)
            if name:
                calls[name].append(call)
        return calls

    def targets(self, call: ast.Call) -> tuple[Function, ...]:
        """The functions of this file that a call may run; empty when it is another, or unknown."""
        if call not in self._targets:
            self._targets[call] = ()  # while being resolved, a call through itself leads nowhere
            self._targets[call] = tuple(dict.fromkeys(self._resolve(call.func, _ALIAS_DEPTH)))
        return self._targets[call]

    def is_shown(self, call: ast.Call) -> bool:
        """Whether what a call runs is known: a function of this file, or of another of the project."""
        return bool(self.targets(call)) or self.kinds.imported.behaviour(self.kinds.imported.function(call)) is not None

    def _resolve(self, func: ast.expr, depth: int) -> Iterator[Function]:
        if isinstance(func, ast.Name):
            yield from self._named(func, depth)
        elif isinstance(func, ast.IfExp):
            yield from self._resolve(func.body, depth)
            yield from self._resolve(func.orelse, depth)
        elif isinstance(func, ast.Attribute):
            definition = self.class_of(func.value)
            found = self._classes.method(definition, func.attr) if definition else None
            if found:
                yield found

    def _named(self, name: ast.Name, depth: int) -> Iterator[Function]:
        for binding in self._names.bindings(name):
            if isinstance(binding, FUNCTIONS):
                yield binding
            elif isinstance(binding, ast.ClassDef):
                init = self._classes.method(binding, "__init__")
                if init:
                    yield init
            elif isinstance(binding, ast.Name) and depth:
                form, value, path = self._flow.definition(binding)
                if form is Form.ASSIGNED and not path and isinstance(value, (ast.Name, ast.IfExp, ast.Attribute)):
                    yield from self._resolve(value, depth - 1)

    def returns(self, function: Function) -> list[ast.expr | None]:
        """The values of a function's own return statements; a generator has none."""
        if function not in self._returns:
            self._returns[function] = _own_returns(function)
        return self._returns[function]

    def class_of(self, receiver: ast.expr) -> ast.ClassDef | None:
        """The class of this file that `receiver` is an instance of (or names)."""
        if isinstance(receiver, ast.Name) and receiver.id in {"self", "cls"}:
            return self.enclosing_class(receiver)
        if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super":
            return None
        direct = self._classes.resolve(receiver)
        if direct:
            return direct
        fact = self.kinds.fact(receiver)
        return fact.origin if fact and isinstance(fact.origin, ast.ClassDef) else None

    def enclosing_class(self, node: ast.AST) -> ast.ClassDef | None:
        """The class of the method that a node stands in, through nested functions."""
        return next((a for a in self._flow.ancestors(node) if isinstance(a, ast.ClassDef)), None)

    def calls_to(self, function: Function) -> list[ast.Call]:
        """The calls in this file that may run `function`."""
        names = {function.name} | self._aliases(function.name)
        owner = self._classes.owner(function)
        if owner and function.name == "__init__":
            names = {owner.name, *(c.name for c in self._index.all(ast.ClassDef) if owner in set(self._classes.lineage(c)))}
        candidates = [call for name in names for call in self._calls_by_name.get(name, [])]
        return [call for call in candidates if function in self.targets(call)]

    def _aliases(self, name: str) -> set[str]:
        """Names that are assigned the function: `train = train_fast if fast else train_slow`."""
        return self._alias_table.get(name, set())

    @cached_property
    def _alias_table(self) -> dict[str, set[str]]:
        table: dict[str, set[str]] = defaultdict(set)
        for statement in self._index.all(ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and isinstance(statement.value, (ast.Name, ast.IfExp, ast.Attribute)):
                for node in ast.walk(statement.value):
                    if isinstance(node, (ast.Name, ast.Attribute)):
                        table[_last_name(node)].add(target.id)
        return table

    def argument(self, call: ast.Call, function: Function, parameter: str) -> ast.expr | None:
        """The expression that a call passes for a parameter; None when it is absent or hidden in `*` or `**`."""
        for keyword in call.keywords:
            if keyword.arg == parameter:
                return keyword.value
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if self.is_bound_method(call, function):
            names = names[1:]
        if parameter not in names or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        position = names.index(parameter)
        return call.args[position] if position < len(call.args) else None

    def is_bound_method(self, call: ast.Call, function: Function) -> bool:
        """Whether the call passes `self` (or `cls`) without writing it."""
        owner = self._classes.owner(function)
        if owner is None or any(_last_name(d) == "staticmethod" for d in function.decorator_list):
            return False
        if isinstance(call.func, ast.Attribute) and self._classes.resolve(call.func.value) and function.name != "__init__":
            return any(_last_name(d) == "classmethod" for d in function.decorator_list)
        return True


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _own_returns(function: Function) -> list[ast.expr | None]:
    values: list[ast.expr | None] = []
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return []
        if isinstance(node, ast.Return):
            values.append(node.value)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return values
