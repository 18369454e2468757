"""Which places run together: branches of which only one runs, and statements that are sure to follow."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .flow import leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .flow import Flow

_ALTERNATIVES: dict[type[ast.AST], tuple[tuple[str, ...], ...]] = {
    ast.If: (("body",), ("orelse",)),
    ast.IfExp: (("body",), ("orelse",)),
    ast.Try: (("body", "orelse"), ("handlers",)),
}
"""Fields of a node of which only one group runs to its end."""


def exclusive(flow: Flow, first: ast.AST, second: ast.AST) -> bool:
    """Whether the code of one function shows that a run of `first` is never followed by one of `second`, but in another round of a loop."""
    around = [second, *flow.ancestors(second)]
    branch: ast.AST = first
    for ancestor in flow.ancestors(first):
        if ancestor in around:
            other = around[max(around.index(ancestor) - 1, 0)]
            return _are_alternatives(ancestor, branch, other)
        if isinstance(ancestor, ast.stmt) and _block_leaves(ancestor, branch):
            return True
        branch = ancestor
    return False


def _block_leaves(statement: ast.stmt, child: ast.AST) -> bool:
    blocks = [getattr(statement, name, None) for name in ("body", "orelse")]
    return any(isinstance(block, list) and child in block and leaves(block) for block in blocks)


def _are_alternatives(node: ast.AST, first: ast.AST, second: ast.AST) -> bool:
    if isinstance(node, ast.Match):
        return first is not second and isinstance(first, ast.match_case) and isinstance(second, ast.match_case)
    if isinstance(first, ast.ExceptHandler) and isinstance(second, ast.ExceptHandler):
        return first is not second
    groups = _ALTERNATIVES.get(type(node), ())
    places = [next((i for i, group in enumerate(groups) if _is_in(node, group, child)), None) for child in (first, second)]
    return None not in places and places[0] != places[1]


def _is_in(node: ast.AST, fields: tuple[str, ...], child: ast.AST) -> bool:
    values = (getattr(node, name) for name in fields)
    return any(child is value or (isinstance(value, list) and child in value) for value in values)


def sure_to_follow(flow: Flow, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements that run after one whenever it has run and nothing raises, up to the end of the round of its loop, or of its function."""
    while True:
        block, index = flow.place(statement)
        for later in block[index + 1 :]:
            yield from _opened(later)
            if any(isinstance(node, (ast.Return, ast.Continue, ast.Break, ast.Raise)) for node in ast.walk(later)):
                return
        parent = flow.parent(statement)
        if not isinstance(parent, (ast.If, ast.With, ast.AsyncWith, ast.Try)):
            return
        if isinstance(parent, ast.Try):
            closing = [*parent.orelse, *parent.finalbody] if statement in parent.body else parent.finalbody
            yield from (inner for later in closing if statement not in parent.finalbody for inner in _opened(later))
        statement = parent


def _opened(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement, and what is sure to run inside it."""
    yield statement
    if isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
        for inner in [*statement.body, *getattr(statement, "finalbody", ())]:
            yield from _opened(inner)
