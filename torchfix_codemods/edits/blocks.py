"""The edits of one segment that change which statements its blocks hold."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import libcst as cst

from . import statements
from .kinds import (
    DeleteStatement,
    InsertAfter,
    InsertBefore,
    MoveBefore,
    ReplaceStatement,
    Unwrap,
    WrapInIf,
    WrapInTry,
    WrapInWith,
)
from .parse import Refusal
from .statements import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..source import Span
    from .kinds import Edit

BLOCKS = (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)
"""The nodes that hold statements."""
_ORDER = (MoveBefore, InsertBefore, InsertAfter, WrapInWith, WrapInTry, WrapInIf, ReplaceStatement, DeleteStatement, Unwrap)
"""Blocks change in this order, so that what is inserted before a wrapped statement stays outside the wrap."""


class BlockChange:
    """Edits by the block that they change; blocks must be handed in from the inside out."""

    def __init__(self, find: Callable[[Span], cst.CSTNode], owner_of: Mapping[cst.CSTNode, cst.CSTNode], unit: str) -> None:
        self._find, self._owners, self._unit = find, owner_of, unit
        self._edits: dict[cst.CSTNode, list[Edit]] = defaultdict(list)
        self._taken: dict[MoveBefore, Entry] = {}

    def add(self, edit: Edit) -> None:
        """Register an edit; raises `Refusal` when no block can take it."""
        match edit:
            case (
                InsertBefore(statement)
                | InsertAfter(statement)
                | Unwrap(statement)
                | DeleteStatement(statement)
                | ReplaceStatement(statement)
            ):
                self._edits[self._block_of(statement)].append(edit)
            case WrapInWith(first, last) | WrapInTry(first, last) | WrapInIf(first, last):
                if self._block_of(first) is not self._block_of(last):
                    message = "the first and the last statement stand in different blocks"
                    raise Refusal(message)
                self._edits[self._block_of(first)].append(edit)
            case MoveBefore(statement, before):
                self._add_move(edit, self._block_of(statement), self._block_of(before))

    def apply(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
        """The block with its edits applied to what its statements have become."""
        if original not in self._edits:
            return updated
        if isinstance(original, cst.SimpleStatementSuite) and isinstance(updated, cst.SimpleStatementSuite):
            entries, updated = _expanded(original, updated, self._unit)
        else:
            assert isinstance(original, (cst.Module, cst.IndentedBlock))
            assert isinstance(updated, (cst.Module, cst.IndentedBlock))
            entries = [Entry(old, new) for old, new in zip(original.body, updated.body, strict=True)]
        footer: Sequence[cst.EmptyLine] = updated.footer
        for edit in sorted(self._edits[original], key=lambda edit: _ORDER.index(type(edit))):
            if isinstance(edit, (WrapInTry, WrapInIf)) and self._ends(entries, edit.last):
                entries, footer = self._changed(edit, entries, original, footer), ()
            else:
                entries = self._changed(edit, entries, original, ())
        return updated.with_changes(body=[entry.current for entry in entries], footer=footer)

    def _changed(self, edit: Edit, entries: list[Entry], block: cst.CSTNode, footer: Sequence[cst.EmptyLine]) -> list[Entry]:
        match edit:
            case InsertBefore(statement, code, apart):
                return statements.insert_before(entries, self._find(statement), code, self._unit, apart)
            case InsertAfter(statement, code):
                return statements.insert_after(entries, self._find(statement), code, self._unit)
            case MoveBefore():
                return self._moved(edit, entries, block)
            case WrapInWith(first, last, item):
                return statements.wrap_in_with(entries, self._find(first), self._find(last), item, self._unit)
            case WrapInTry(first, last, cleanup):
                return statements.wrap_in_try(entries, self._find(first), self._find(last), cleanup, self._unit, footer)
            case WrapInIf(first, last, test):
                return statements.wrap_in_if(entries, self._find(first), self._find(last), test, self._unit, footer)
            case ReplaceStatement(statement, code):
                return statements.replace_statement(entries, self._find(statement), code, self._unit)
            case DeleteStatement(statement):
                return statements.delete(entries, self._find(statement))
            case Unwrap(statement):
                return statements.unwrap(entries, self._find(statement))
        return entries

    def _add_move(self, edit: MoveBefore, source: cst.CSTNode, goal: cst.CSTNode) -> None:
        block = source
        while block is not goal:
            if block not in self._owners:
                message = "the two statements stand in different blocks"
                raise Refusal(message)
            block = self._owners[block]
        self._edits[source].append(edit)
        if goal is not source:
            self._edits[goal].append(edit)

    def _moved(self, edit: MoveBefore, entries: list[Entry], block: cst.CSTNode) -> list[Entry]:
        if self._block_of(edit.statement) is block:
            entries, self._taken[edit] = statements.take(entries, self._find(edit.statement))
        if self._block_of(edit.before) is block:
            entries = statements.put_before(entries, self._find(edit.before), self._taken[edit])
        return entries

    def _block_of(self, span: Span) -> cst.CSTNode:
        owner = self._owners.get(self._find(span))
        if owner is None:
            message = "an `elif` can't have statements of its own around it"
            raise Refusal(message)
        return owner

    def _ends(self, entries: list[Entry], last: Span) -> bool:
        node, line = self._find(last), entries[-1].original
        return line is node or (isinstance(line, cst.SimpleStatementLine) and node in line.body)


def owners(module: cst.Module) -> dict[cst.CSTNode, cst.CSTNode]:
    """The block that each statement stands in, and the block around each block."""
    found: dict[cst.CSTNode, cst.CSTNode] = {}
    stack: list[tuple[cst.CSTNode, cst.CSTNode]] = [(module, module)]
    while stack:
        node, block = stack.pop()
        if isinstance(node, BLOCKS):
            if node is not module:
                found[node] = block
            block = node
            for child in node.body:
                found[child] = block
                if isinstance(child, cst.SimpleStatementLine):
                    found.update(dict.fromkeys(child.body, block))
        stack += [(child, block) for child in node.children if isinstance(child, _WITH_BLOCKS)]
    return found


_WITH_BLOCKS = (
    *BLOCKS, cst.BaseCompoundStatement, cst.Else, cst.Finally, cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase,
)  # fmt: skip
"""What may hold a block, near or far."""


def _expanded(original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite, unit: str) -> tuple[list[Entry], cst.IndentedBlock]:
    """A block on lines of its own for `if x: y()`."""
    before = cst.SimpleStatementLine(body=original.body)
    line = cst.SimpleStatementLine(body=updated.body, trailing_whitespace=updated.trailing_whitespace)
    return [Entry(before, line)], cst.IndentedBlock(body=[line], indent=unit)
