"""The transformer of one segment: walks its tree once and hands each node to the edits that are about it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import libcst as cst

from ..source import Span
from . import expressions, statements
from .kinds import AddDecorator, AddKeyword, ChangeTail, InsertAfter, InsertBefore, MoveBefore, ReplaceExpression, WrapInTry, WrapInWith
from .parse import Parsed, Refusal, parse_expression
from .statements import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .kinds import Edit

_ORDER = (MoveBefore, InsertBefore, InsertAfter, WrapInWith, WrapInTry)
"""Blocks change in this order, so that what is inserted before a wrapped statement stays outside the wrap."""


class SegmentTransformer(cst.CSTTransformer):
    """Applies the edits of one segment. Nodes are found by their bytes; raises `Refusal` when one isn't there."""

    def __init__(self, parsed: Parsed, start: int, unit: str, edits: Sequence[Edit]) -> None:
        super().__init__()
        self._parsed, self._start, self._unit = parsed, start, unit
        self._changes: dict[cst.CSTNode, list[Callable[[cst.CSTNode], cst.CSTNode]]] = defaultdict(list)
        self._blocks: dict[cst.CSTNode, list[Edit]] = defaultdict(list)
        self._owners = _owners(parsed.module)
        self._quotes: list[str] = []
        for edit in edits:
            self._register(edit)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Remember the quotes of f-strings around: new strings inside must use others."""
        if isinstance(node, cst.FormattedString):
            self._quotes.append(node.end[-1])
        return True

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]  # no node is removed
        """Apply what is registered for a node to what its children have become."""
        if isinstance(original_node, cst.FormattedString):
            self._quotes.pop()
        for change in self._changes.get(original_node, ()):
            updated_node = change(updated_node)
        if original_node in self._blocks:
            updated_node = self._change_block(original_node, updated_node)
        return updated_node

    def _register(self, edit: Edit) -> None:
        match edit:
            case AddKeyword(call):
                self._on(self._expression(call), lambda node: expressions.add_keyword(node, edit, frozenset(self._quotes)))  # type: ignore[arg-type]  # found as a call
            case ReplaceExpression(target):
                self._on(self._expression(target), lambda node: expressions.replace_expression(node, edit, frozenset(self._quotes)))  # type: ignore[arg-type]  # found as an expression
            case ChangeTail(target, keep):
                node = self._expression(target)
                steps = expressions.steps_to(node, self._expression(keep))
                self._on(node, lambda current: expressions.change_tail(current, steps, edit))  # type: ignore[arg-type]  # found as an expression
            case AddDecorator(function, code):
                self._on(self._statement(function), lambda node: _decorated(node, code))
            case InsertBefore(statement) | InsertAfter(statement):
                self._blocks[self._block_of(statement)].append(edit)
            case MoveBefore(statement, before):
                self._register_move(statement, before, edit)
            case WrapInWith(first) | WrapInTry(first):
                self._blocks[self._block_of(first)].append(edit)

    def _register_move(self, statement: Span, before: Span, edit: MoveBefore) -> None:
        if self._block_of(statement) is not self._block_of(before):
            message = "the two statements stand in different blocks"
            raise Refusal(message)
        self._blocks[self._block_of(statement)].append(edit)

    def _on(self, node: cst.CSTNode, change: Callable[[cst.CSTNode], cst.CSTNode]) -> None:
        self._changes[node].append(change)

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

    def _block_of(self, span: Span) -> cst.CSTNode:
        owner = self._owners.get(self._statement(span))
        if owner is None:
            message = "an `elif` can't have statements of its own around it"
            raise Refusal(message)
        return owner

    def _change_block(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
        if isinstance(original, cst.SimpleStatementSuite) and isinstance(updated, cst.SimpleStatementSuite):
            entries, updated = _expanded(original, updated, self._unit)
        else:
            assert isinstance(original, (cst.Module, cst.IndentedBlock))
            assert isinstance(updated, (cst.Module, cst.IndentedBlock))
            entries = [Entry(old, new) for old, new in zip(original.body, updated.body, strict=True)]
        footer = getattr(updated, "footer", ())
        for edit in sorted(self._blocks[original], key=lambda edit: _ORDER.index(type(edit))):
            entries, footer = self._apply(edit, entries, footer)
        return updated.with_changes(body=[entry.current for entry in entries], footer=footer)

    def _apply(self, edit: Edit, entries: list[Entry], footer: Sequence[cst.EmptyLine]) -> tuple[list[Entry], Sequence[cst.EmptyLine]]:
        match edit:
            case InsertBefore(statement, code):
                return statements.insert_before(entries, self._statement(statement), code), footer
            case InsertAfter(statement, code):
                return statements.insert_after(entries, self._statement(statement), code), footer
            case MoveBefore(statement, before):
                rest, taken = statements.take(entries, self._statement(statement))
                return statements.put_before(rest, self._statement(before), taken), footer
            case WrapInWith(first, last, item):
                return statements.wrap_in_with(entries, self._statement(first), self._statement(last), item, self._unit), footer
            case WrapInTry(first, last, cleanup):
                ends_block = entries[-1].original is self._line_of(last)
                inner = footer if ends_block else ()
                wrapped = statements.wrap_in_try(entries, self._statement(first), self._statement(last), cleanup, self._unit, inner)
                return wrapped, () if ends_block else footer
        return entries, footer

    def _line_of(self, span: Span) -> cst.CSTNode:
        """The entry of a block that a statement is: its line, for a small statement."""
        node = self._statement(span)
        block = self._block_of(span)
        body = getattr(block, "body", ())
        return next((line for line in body if line is node or (isinstance(line, cst.SimpleStatementLine) and node in line.body)), node)


def _owners(module: cst.Module) -> dict[cst.CSTNode, cst.CSTNode]:
    """The block that each statement stands in."""
    owners: dict[cst.CSTNode, cst.CSTNode] = {}
    stack: list[cst.CSTNode] = [module]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            for child in node.body:
                owners[child] = node
                if isinstance(child, cst.SimpleStatementLine):
                    owners.update(dict.fromkeys(child.body, node))
        stack += [child for child in node.children if not isinstance(child, cst.BaseParenthesizableWhitespace)]
    return owners


def _expanded(original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite, unit: str) -> tuple[list[Entry], cst.IndentedBlock]:
    """A block on lines of its own for `if x: y()`."""
    if len(original.body) > 1:
        message = "the statement shares its line with others"
        raise Refusal(message)
    line = cst.SimpleStatementLine(body=updated.body, trailing_whitespace=updated.trailing_whitespace)
    return [Entry(original.body[0], line)], cst.IndentedBlock(body=[line], indent=unit)


def _decorated(node: cst.CSTNode, code: str) -> cst.CSTNode:
    """The function with one more decorator, next to its `def`."""
    assert isinstance(node, cst.FunctionDef)
    new = cst.Decorator(decorator=parse_expression(code), leading_lines=node.lines_after_decorators)
    return node.with_changes(decorators=[*node.decorators, new], lines_after_decorators=())
