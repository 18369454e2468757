"""Statements that may run without gradients, for a `with torch.no_grad():` around them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model import Happening
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.training import own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchfix_codemods.model import FileModel

_STAY_OUT = (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
"""What hands values, or the grad mode itself, to somebody else."""
_NEEDS_GRADIENTS = {Happening.BACKWARD, Happening.STEP}
_GATHERS = frozenset({"append", "extend", "insert", "add"})


class Region(NamedTuple):
    """Statements of one block, from the first to the last."""

    first: ast.stmt
    last: ast.stmt


def loop_without_gradients(file: FileModel, node: ast.AST) -> Region | None:
    """The largest loop around a place that runs a model, and does nothing that needs gradients."""
    for loop in reversed(file.flow.loops(node)):
        if _is_free(file, [loop]):
            return Region(loop, loop)
    return None


def statements_without_gradients(file: FileModel, nodes: Sequence[ast.AST]) -> Region | None:
    """The statements of one block from the first of some places to the last use of what they compute, if nothing needs gradients."""
    block, start = file.flow.place(file.flow.statement(nodes[0]))
    wanted, end, names = [file.flow.statement(node) for node in nodes], start, set[str]()
    for i, statement in enumerate(block[start:], start):
        if statement in wanted or not names.isdisjoint(_names(statement, ast.Load)):
            end = i
            names |= set(_names(statement, ast.Store))
    region = block[start : end + 1]
    if any(isinstance(statement, _STAY_OUT) for statement in region) or not _is_free(file, region):
        return None
    return Region(region[0], region[-1])


def _is_free(file: FileModel, statements: list[ast.stmt]) -> bool:
    happenings = {event.happening for event in file.training.events(statements)}
    if happenings & _NEEDS_GRADIENTS or Happening.FORWARD not in happenings:
        return False
    if any(isinstance(node, _LEAVES) or file.roles.needs_gradient(node) for s in statements for node in ast.walk(s)):
        return False
    return not any(file.backflow.of_name(place) for place in _leaving(file, statements))


def _leaving(file: FileModel, statements: list[ast.stmt]) -> Iterator[ast.expr]:
    """Where values computed in a region are found after it: variables that are read there, containers and attributes."""
    inside = {node for statement in statements for node in own_nodes(statement)}
    for node in inside:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield from (read for read in file.kinds.reads(node.id) if read not in inside and node in file.flow.reaching(read))
        elif _is_kept_elsewhere(node):
            yield node  # type: ignore[misc]  # an attribute or an item
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GATHERS:
            yield node.func.value


def _is_kept_elsewhere(node: ast.AST) -> bool:
    """An item or attribute that is set; new `.data` of a tensor goes where the tensor goes."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Store) and node.attr != "data"
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _names(statement: ast.stmt, context: type[ast.expr_context]) -> Iterator[str]:
    return (node.id for node in own_nodes(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, context))
