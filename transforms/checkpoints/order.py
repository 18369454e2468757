"""Whether one place is sure to have run before another, in one run of a file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_DEPTH = 3


def runs_before(file: FileModel, first: ast.AST, second: ast.AST, depth: int = _DEPTH) -> bool:
    """Whether `first` has always run when `second` does: in one block, or through the only calls of their functions."""
    outer, inner = file.flow.function(first), file.flow.function(second)
    if outer is inner:
        return _dominates(file, first, second)
    if not depth:
        return False
    for first_place in _callers(file, first):
        for second_place in _callers(file, second):
            if (first_place, second_place) != (first, second) and runs_before(file, first_place, second_place, depth - 1):
                return True
    return False


def _callers(file: FileModel, node: ast.AST) -> list[ast.AST]:
    """The place itself, and the one call that leads to it."""
    function = file.flow.function(node)
    calls = file.functions.calls_to(function) if isinstance(function, FUNCTIONS) and _is_unconditional(file, node) else []
    return [node, *calls] if len(calls) == 1 else [node]


def _is_unconditional(file: FileModel, node: ast.AST) -> bool:
    """Whether a node runs whenever its function does; the body of a loop or a with counts as running."""
    for ancestor in file.flow.ancestors(node):
        if isinstance(ancestor, FUNCTIONS):
            return True
        if isinstance(ancestor, (ast.If, ast.IfExp, ast.ExceptHandler, ast.While, ast.Lambda, ast.BoolOp)):
            return False
    return True


def _dominates(file: FileModel, first: ast.AST, second: ast.AST) -> bool:
    """Whether `first` stands earlier in a block that `second` stands in too, at whatever depth."""
    statement = file.flow.statement(first)
    if statement is file.flow.statement(second):
        return False
    block, index = file.flow.place(statement)
    later = {id(s) for s in block[index + 1 :]}
    if any(id(a) in later for a in [file.flow.statement(second), *file.flow.ancestors(second)]):
        return True
    parent = file.parent(statement)
    # A with or a loop around the save: what follows it comes after.
    return isinstance(parent, (ast.With, ast.For)) and _dominates(file, parent, second)
