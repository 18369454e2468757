"""Whether a graph may hold what a statement writes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.training import own_nodes

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_ENDS_GRAPH = frozenset({Happening.BACKWARD, Happening.STEP})


def is_between_forward_and_backward(file: FileModel, written: ast.expr, statement: ast.stmt) -> bool:
    """Whether a backward follows, and what is written was used since the last backward or step."""
    function = file.flow.function(statement)
    body = function.body if isinstance(function, FUNCTIONS) else file.tree.body
    events = list(file.training.events(body))
    if not any(e.happening is Happening.BACKWARD and e.node.lineno > statement.lineno for e in events):
        return False
    start = max((e.node.lineno for e in events if e.happening in _ENDS_GRAPH and e.node.lineno < statement.lineno), default=0)
    if any(e.happening is Happening.FORWARD and start < e.node.lineno < statement.lineno for e in events):
        return True
    return used_before(file, written, statement, body, start)


def used_before(file: FileModel, written: ast.expr, statement: ast.stmt, body: list[ast.stmt], start: int = 0) -> bool:
    """Whether some code computes with a value between a line and a statement."""
    text = ast.unparse(written)
    used = (n for s in body for n in own_nodes(s) if isinstance(n, (ast.Name, ast.Attribute)) and start < n.lineno < statement.lineno)
    return any(isinstance(n.ctx, ast.Load) and ast.unparse(n) == text and not _is_inert(file, n) for n in used)


def _is_inert(file: FileModel, node: ast.AST) -> bool:
    parent = file.parent(node)
    return isinstance(parent, ast.Attribute) and parent.attr in {"data", "grad", "shape", "size"}
