"""The transformer of one segment: walks its tree once and hands each node to the edits that are about it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

import libcst as cst

from ..source import Span
from .arguments import add_keyword, argument_place, change_method, remove_argument
from .blocks import BLOCKS, BlockChange, owners
from .expressions import change_tail, replace_expression, steps_to
from .kinds import AddDecorator, AddKeyword, ChangeMethod, ChangeTail, RemoveArgument, ReplaceExpression
from .parse import Parsed, Refusal, parse_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .kinds import Edit

    Change = Callable[[Any], cst.CSTNode]
    """What becomes of a node after the edits inside it; a node stays of its own kind until its last change."""

Node = TypeVar("Node", bound=cst.CSTNode)
_INTERPOLATED = (cst.FormattedString, getattr(cst, "TemplatedString", cst.FormattedString))


class SegmentTransformer(cst.CSTTransformer):
    """Applies the edits of one segment. Nodes are found by their bytes; raises `Refusal` when one isn't there."""

    def __init__(self, parsed: Parsed, start: int, unit: str, edits: Sequence[Edit]) -> None:
        super().__init__()
        self._parsed, self._start, self._unit = parsed, start, unit
        self._changes: dict[cst.CSTNode, list[Change]] = defaultdict(list)
        self._blocks = BlockChange(self._statement, owners(parsed.module), unit)
        self._quotes: list[str] = []
        self._path: list[cst.CSTNode] = []
        # An argument goes into the call as it was written, before anything is put behind it; others leave it from the back.
        for edit in sorted(edits, key=_turn):
            self._register(edit)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Remember the way to a node, and the quotes of f-strings around it: new strings inside must use others."""
        self._path.append(node)
        if isinstance(node, _INTERPOLATED):
            self._quotes.append(node.end[-1])
        return True

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]  # no node is removed
        """Apply what is registered for a node to what its children have become."""
        self._path.pop()
        if isinstance(original_node, _INTERPOLATED):
            self._quotes.pop()
        for change in self._changes.get(original_node, ()):
            updated_node = change(updated_node)
        if isinstance(original_node, BLOCKS):
            return self._blocks.apply(original_node, updated_node)
        return updated_node

    def _register(self, edit: Edit) -> None:
        match edit:
            case AddKeyword(call):
                self._on(_a(cst.Call, self._expression(call)), lambda node: add_keyword(node, edit, self._taken, self._unit))
            case RemoveArgument(call, value):
                place = argument_place(_a(cst.Call, self._expression(call)), self._expression(value))
                self._on(self._expression(call), lambda node: remove_argument(node, place))
            case ChangeMethod(call):
                self._on(_a(cst.Call, self._expression(call)), lambda node: change_method(node, edit))
            case ReplaceExpression(target):
                self._on(self._expression(target), lambda node: replace_expression(node, edit, self._taken, self._path[-1]))
            case ChangeTail(target, keep):
                node = self._expression(target)
                steps = steps_to(node, self._expression(keep))
                self._on(node, lambda current: change_tail(current, steps, edit))
            case AddDecorator(function, code):
                self._on(_a(cst.FunctionDef, self._statement(function)), lambda node: _decorated(node, code))
            case _:
                self._blocks.add(edit)

    def _on(self, node: cst.CSTNode, change: Change) -> None:
        self._changes[node].append(change)

    @property
    def _taken(self) -> frozenset[str]:
        return frozenset(self._quotes)

    def _place(self, span: Span) -> Span:
        shift = self._parsed.shift - self._start
        return Span(span.start + shift, span.end + shift)

    def _expression(self, span: Span) -> cst.BaseExpression:
        node = self._parsed.expressions.get(self._place(span))
        if node is None:
            message = "the expression could not be located exactly"
            raise Refusal(message)
        return node

    def _statement(self, span: Span) -> cst.CSTNode:
        node = self._parsed.statements.get(self._place(span).start)
        if node is None:
            message = "the statement could not be located exactly"
            raise Refusal(message)
        return node


def _turn(edit: Edit) -> tuple[int, int]:
    if isinstance(edit, RemoveArgument):
        return 1, -edit.value.start
    return (0, 0) if isinstance(edit, AddKeyword) else (2, 0)


def _a(kind: type[Node], node: cst.CSTNode) -> Node:
    """The node, which must be of the kind that its edit is for."""
    if not isinstance(node, kind):
        message = f"a {kind.__name__} was expected where a {type(node).__name__} stands"
        raise Refusal(message)
    return node


def _decorated(node: cst.FunctionDef, code: str) -> cst.FunctionDef:
    """The function with one more decorator, next to its `def`."""
    new = cst.Decorator(decorator=parse_expression(code), leading_lines=node.lines_after_decorators)
    return node.with_changes(decorators=[*node.decorators, new], lines_after_decorators=())
