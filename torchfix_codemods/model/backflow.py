"""Whether a value may take part in a later backward: through assignments, containers and returns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .index import FUNCTIONS
from .training import Happening, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .kinds import Kinds
    from .training import Training

_DEPTH = 3
_LEAVES_GRAPH = frozenset("item detach data tolist numpy cpu_numpy size shape".split())
_NUMBERS = frozenset({"builtins.float", "builtins.int", "builtins.len", "builtins.print", "builtins.str", "builtins.repr"})
_GRADIENT_FUNCTIONS = frozenset({"torch.autograd.grad", "torch.autograd.backward"})


class Backflow:
    """Follows values forward to `backward()` calls, by name, inside one file."""

    def __init__(self, kinds: Kinds, training: Training) -> None:
        self._kinds, self._training = kinds, training

    def of_name(self, target: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether what is gathered in a variable, attribute or container may be differentiated later."""
        name = _base(target)
        if name is None:
            return True
        if isinstance(target, ast.Name) or not name.startswith("."):
            return self._in_function(target, {name}, depth)
        return self._in_function(target, {name}, 0, self._kinds.index.module)

    def of_result(self, call: ast.Call, depth: int = _DEPTH) -> bool:
        """Whether a call's result may be differentiated later."""
        if self._is_differentiated(call):
            return True
        names, returned = self._receivers(call)
        if returned and self._returns_to_backward(call, depth):
            return True
        return bool(names) and self._in_function(call, names, depth)

    def _in_function(self, at: ast.AST, names: set[str], depth: int, region: ast.AST | None = None) -> bool:
        nodes = list(ast.walk(region)) if region is not None else self._nodes_around(at)
        grown = True
        while grown:
            before = len(names)
            for node in nodes:
                if (
                    isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign))
                    and node.value
                    and _mentions(node.value, names, self._leaves)
                ):
                    names |= set(_targets(node))
                elif isinstance(node, ast.Call) and _is_append(node) and _mentions(node.args[0], names, self._leaves):
                    names |= {name for name in [_base(node.func.value)] if name}  # type: ignore[attr-defined]  # an append
            grown = len(names) > before
        if any(self._differentiates(node, names) for node in nodes):
            return True
        returns = [n for n in nodes if isinstance(n, (ast.Return, ast.Yield)) and n.value and _mentions(n.value, names, self._leaves)]
        return any(self._returns_to_backward(node, depth) for node in returns)

    def _nodes_around(self, at: ast.AST) -> list[ast.AST]:
        """The code that shares local names with a place: its function, or the statements of the module outside functions."""
        function = self._kinds.flow.function(at)
        if function is not None:
            return list(ast.walk(function))
        return [node for statement in self._kinds.index.module.body for node in own_nodes(statement)]

    def _differentiates(self, node: ast.AST, names: set[str]) -> bool:
        if isinstance(node, ast.Call):
            for event in self._training.at(node):
                if event.happening is Happening.BACKWARD and event.subject is not None and _mentions(event.subject, names, self._leaves):
                    return True
            if self._kinds.names.qualified(node.func) in _GRADIENT_FUNCTIONS:
                return any(_mentions(argument, names, self._leaves) for argument in node.args)
        return False

    def _returns_to_backward(self, node: ast.AST, depth: int) -> bool:
        function = self._kinds.flow.function(node)
        if not isinstance(function, FUNCTIONS) or not depth:
            return False
        if function.name == "forward":
            return True
        return any(self.of_result(call, depth - 1) for call in self._kinds.functions.calls_to(function))

    def _is_differentiated(self, call: ast.Call) -> bool:
        """`f().backward()`, `scaler.scale(f()).backward()` and sums of such."""
        node: ast.AST = call
        for parent in self._kinds.flow.ancestors(call):
            if isinstance(parent, ast.stmt):
                return False
            if isinstance(parent, ast.Call) and any(e.happening is Happening.BACKWARD for e in self._training.at(parent)):
                return True
            if self._leaves(parent) and node is not parent:
                return False
            node = parent
        return False

    def _receivers(self, call: ast.Call) -> tuple[set[str], bool]:
        """The names that a call's result is stored in, and whether it is returned."""
        statement = self._kinds.flow.statement(call)
        if isinstance(statement, ast.Return):
            return set(), True
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return set(_targets(statement)), False
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Call) and _is_append(value):
            return {name for name in [_base(value.func.value)] if name}, False  # type: ignore[attr-defined]  # an append
        return set(), False

    def _leaves(self, node: ast.AST) -> bool:
        """Whether a value leaves the graph here: `x.item()`, `x.detach()`, `float(x)`."""
        if isinstance(node, ast.Attribute):
            return node.attr in _LEAVES_GRAPH
        return isinstance(node, ast.Call) and self._kinds.names.qualified(node.func) in _NUMBERS


def _mentions(expression: ast.expr, names: Iterable[str], leaves: object) -> bool:
    """Whether an expression reads one of the names, other than to leave the graph."""
    stack: list[ast.AST] = [expression]
    while stack:
        node = stack.pop()
        if callable(leaves) and leaves(node):
            continue
        if (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and "." + node.attr in names):
            return True
        stack += ast.iter_child_nodes(node)
    return False


def _targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        yield from (name for element in elements if (name := _base(element)))


def _base(node: ast.expr) -> str | None:
    """The variable that holds a value: `x` for `x` and `x["k"]`, `.y` for `self.y` and `self.y[0]`."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else "." + node.attr if isinstance(node, ast.Attribute) else None


def _is_append(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in {"append", "extend", "insert", "add"} and bool(call.args)
