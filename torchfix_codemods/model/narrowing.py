"""What an `isinstance` test on the way to a use proves about a name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .facts import TENSOR, Fact, Kind
from .flow import leaves
from .parameter_kinds import is_layer_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .kinds import Kinds


def narrowed(kinds: Kinds, name: ast.Name) -> Fact | None:
    """The fact that the tests around (or left before) a use prove; None without such a test."""
    for test in _passed_tests(kinds, name):
        fact = _proves(kinds, test, name)
        if fact:
            return fact
    return None


def _passed_tests(kinds: Kinds, name: ast.Name) -> Iterator[ast.expr]:
    """Conditions that hold where `name` is used: of enclosing ifs, and of guards that left the block before."""
    child: ast.AST = name
    for parent in kinds.flow.ancestors(name):
        if isinstance(parent, (ast.If, ast.IfExp)):
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            if child in body:
                yield parent.test
        elif isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And) and child in parent.values:
            yield from parent.values[: parent.values.index(child)]
        if isinstance(child, ast.stmt):
            yield from _guards(kinds, child)
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        child = parent


def _guards(kinds: Kinds, statement: ast.stmt) -> Iterator[ast.expr]:
    block, index = kinds.flow.place(statement)
    for earlier in block[:index]:
        test = earlier.test if isinstance(earlier, ast.If) and leaves(earlier.body) else None
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield test.operand


def _proves(kinds: Kinds, test: ast.expr, name: ast.Name) -> Fact | None:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return next((fact for value in test.values if (fact := _proves(kinds, value, name))), None)
    if not isinstance(test, ast.Call) or not test.args:
        return None
    subject = test.args[0]
    if not isinstance(subject, ast.Name) or subject.id != name.id:
        return None
    if set(kinds.flow.reaching(subject)) != set(kinds.flow.reaching(name)):
        # The name was bound anew since the test.
        return None
    called = kinds.names.qualified(test.func)
    if called == "torch.is_tensor":
        return TENSOR
    if called != "builtins.isinstance" or len(test.args) < 2:  # isinstance takes two
        return None
    tested = kinds.names.qualified(test.args[1])
    if tested == "torch.Tensor":
        return TENSOR
    return Fact(Kind.MODULE, tested if tested != "torch.nn.Module" else None) if is_layer_test(kinds, test) else None
