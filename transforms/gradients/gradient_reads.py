"""Reads of gradients where there are none: after `zero_grad`, before anything has computed them again."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.flow import leaves
from torchfix_codemods.model.training import own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_STOPS = frozenset({Happening.BACKWARD, Happening.STEP})
_LEADING = (ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp)
"""What raises for None where a gradient was expected."""


def read_after(file: FileModel, call: ast.Call) -> ast.Attribute | None:
    """The first use of a gradient in the straight line after a `zero_grad` that sets it to None."""
    statement = file.parent(call)
    if not isinstance(statement, ast.Expr) or not any(e.happening is Happening.CLEAR for e in file.training.at(call)):
        return None
    block, index = file.flow.place(statement)
    for following in block[index + 1 :]:
        if _computes_gradients(file, following):
            return None
        for node in own_nodes(following):
            if _needs_gradient(file, node, following) and isinstance(node, ast.Attribute):
                return node if _is_cleared(file, node, call) else None
        if isinstance(following, (ast.If, ast.Try)) or leaves([following]):
            return None
    return None


def _needs_gradient(file: FileModel, node: ast.AST, statement: ast.stmt) -> bool:
    """Whether a node is a gradient that something is done with, and that nothing around it tests first."""
    if not isinstance(node, ast.Attribute) or node.attr != "grad" or not isinstance(node.ctx, ast.Load):
        return False
    parent = file.parent(node)
    if not isinstance(parent, _LEADING) or (isinstance(parent, ast.Attribute) and parent.attr == "grad"):
        return False
    for ancestor in file.flow.ancestors(node):
        if any(".grad" in ast.unparse(test) for test in _tests(ancestor)):
            return False
        if ancestor is statement:
            break
    return True


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield node.test
    elif isinstance(node, ast.BoolOp):
        yield from node.values[:-1]
    elif isinstance(node, ast.For):
        yield from (child.test for child in node.body if isinstance(child, ast.If))
    for generator in getattr(node, "generators", ()):
        yield from generator.ifs


def _computes_gradients(file: FileModel, statement: ast.stmt) -> bool:
    """A backward, gradients that are set, or a call of which nobody knows what it does with the model."""
    if any(event.happening in _STOPS for event in file.training.events([statement])):
        return True
    for node in own_nodes(statement):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Call) and _may_compute(file, node):
            return True
    return False


def _may_compute(file: FileModel, call: ast.Call) -> bool:
    name = file.qualified(call.func) or ""
    if name.startswith("torch.autograd") or "closure" in ast.unparse(call):
        return True
    if name.startswith(("torch.", "builtins.")) or file.functions.is_shown(call):
        return False
    facts = [file.fact(argument) for argument in call.args]
    return any(fact is not None and fact.kind in {Kind.MODULE, Kind.OPTIMIZER} for fact in facts)


def _is_cleared(file: FileModel, node: ast.Attribute, call: ast.Call) -> bool:
    """Whether a gradient is that of a parameter of the module that was cleared, or that the cleared optimizer steps."""
    assert isinstance(call.func, ast.Attribute)
    owner, cleared = file.identities.of(node.value), file.identities.of(call.func.value)
    fact = file.fact(call.func.value)
    given = fact.call.args[0] if fact is not None and fact.call is not None and fact.call.args else None
    if isinstance(given, (ast.List, ast.Tuple)) and owner in [file.identities.of(element) for element in given.elts]:
        return owner is not None
    root = file.optimized(call.func.value) or cleared
    if root is None or not isinstance(node.value, ast.Name):
        return root is not None and any(file.identities.of(holder) == root for holder in _holders(node.value))
    values = [file.flow.definition(b).value for b in file.flow.reaching(node.value)] or [_iterated(file, node.value)]
    return any(isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and file.identities.of(v.func.value) == root for v in values)


def _holders(node: ast.expr) -> Iterator[ast.expr]:
    """`model`, `model.head` and `model.head.weight` of the last."""
    yield node
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        yield node


def _iterated(file: FileModel, name: ast.Name) -> ast.expr | None:
    """What a comprehension runs over."""
    for ancestor in file.flow.ancestors(name):
        for generator in getattr(ancestor, "generators", ()):
            if isinstance(generator.target, ast.Name) and generator.target.id == name.id:
                return generator.iter  # type: ignore[no-any-return]  # a comprehension
    return None
