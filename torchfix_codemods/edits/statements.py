"""Edits of statements: each works on the list of statements of one block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from .parse import Refusal, parse_expression, parse_statements

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement of a block as it is now, and the libcst node it was read as (None for a new one)."""

    original: cst.CSTNode | None
    current: cst.BaseStatement


def insert_before(entries: list[Entry], anchor: cst.CSTNode, code: str, unit: str, apart: bool = False) -> list[Entry]:
    """New statements above a statement and the comments that belong to it."""
    place = _edge(entries, anchor, 0)
    if _is_future_import(entries[place].current):
        message = "nothing may stand above a `from __future__` import"
        raise Refusal(message)
    blank, attached = _split_leading(entries[place].current)
    new = parse_statements(code, unit)
    new[0] = _with_leading(new[0], blank)
    entry = replace(
        entries[place], current=_with_leading(entries[place].current, [*(_gap(entries[place].current) if apart else ()), *attached])
    )
    return [*entries[:place], *(Entry(None, s) for s in new), entry, *entries[place + 1 :]]


def insert_after(entries: list[Entry], anchor: cst.CSTNode, code: str, unit: str) -> list[Entry]:
    """New statements directly below a statement."""
    place = _edge(entries, anchor, -1)
    return [*entries[: place + 1], *(Entry(None, s) for s in parse_statements(code, unit)), *entries[place + 1 :]]


def take(entries: list[Entry], anchor: cst.CSTNode) -> tuple[list[Entry], Entry]:
    """Remove a statement with its comments; the blank lines above it stay."""
    place = _place(entries, anchor)
    if len(entries) == 1:
        message = "nothing would be left of the block"
        raise Refusal(message)
    blank, attached = _split_leading(entries[place].current)
    taken = replace(entries[place], current=_with_leading(entries[place].current, attached))
    rest = [*entries[:place], *entries[place + 1 :]]
    if blank and place < len(rest):
        own = _leading(rest[place].current)
        if not own or own[0].comment is not None:
            rest[place] = replace(rest[place], current=_with_leading(rest[place].current, [*blank, *own]))
    return rest, taken


def put_before(entries: list[Entry], anchor: cst.CSTNode, moved: Entry) -> list[Entry]:
    """Put a taken statement above the line of another and its comments."""
    place = _edge(entries, anchor, 0)
    blank, attached = _split_leading(entries[place].current)
    new = replace(moved, current=_with_leading(moved.current, [*blank, *_leading(moved.current)]))
    entry = replace(entries[place], current=_with_leading(entries[place].current, attached))
    return [*entries[:place], new, entry, *entries[place + 1 :]]


def wrap_in_with(entries: list[Entry], first: cst.CSTNode, last: cst.CSTNode, item: str, unit: str) -> list[Entry]:
    """Statements under one `with`; blank lines and comments above the first stay above the `with`."""
    before, inside, after = _split(entries, first, last)
    leading = _leading(inside[0].current)
    inside[0] = replace(inside[0], current=_with_leading(inside[0].current, []))
    statement = cst.With(items=[cst.WithItem(parse_expression(item))], body=_block(inside, unit), leading_lines=leading)
    return [*before, Entry(None, statement), *after]


def wrap_in_try(
    entries: list[Entry], first: cst.CSTNode, last: cst.CSTNode, cleanup: str, unit: str, footer: Sequence[cst.EmptyLine]
) -> list[Entry]:
    """Statements under a `try` with the cleanup in its `finally`; comments that end the block go inside."""
    before, inside, after = _split(entries, first, last)
    blank, attached = _split_leading(inside[0].current)
    inside[0] = replace(inside[0], current=_with_leading(inside[0].current, attached))
    body = _block(inside, unit).with_changes(footer=footer)
    finalbody = cst.Finally(body=cst.IndentedBlock(body=parse_statements(cleanup, unit), indent=unit))
    return [*before, Entry(None, cst.Try(body=body, finalbody=finalbody, leading_lines=blank)), *after]


def wrap_in_if(
    entries: list[Entry], first: cst.CSTNode, last: cst.CSTNode, test: str, unit: str, footer: Sequence[cst.EmptyLine]
) -> list[Entry]:
    """Statements under one `if`; comments that belong to the first go inside, as do those that end the block."""
    before, inside, after = _split(entries, first, last)
    blank, attached = _split_leading(inside[0].current)
    inside[0] = replace(inside[0], current=_with_leading(inside[0].current, attached))
    body = _block(inside, unit).with_changes(footer=footer)
    return [*before, Entry(None, cst.If(test=parse_expression(test), body=body, leading_lines=blank)), *after]


def replace_statement(entries: list[Entry], anchor: cst.CSTNode, code: str, unit: str) -> list[Entry]:
    """New statements in the place of one; a comment above it stays above, one behind it behind the last."""
    place = _place(entries, anchor)
    old, new = entries[place].current, parse_statements(code, unit)
    new[0] = _with_leading(new[0], _leading(old))
    if isinstance(old, cst.SimpleStatementLine) and isinstance(new[-1], cst.SimpleStatementLine):
        new[-1] = new[-1].with_changes(trailing_whitespace=old.trailing_whitespace)
    return [*entries[:place], *(Entry(None, statement) for statement in new), *entries[place + 1 :]]


def delete(entries: list[Entry], anchor: cst.CSTNode) -> list[Entry]:
    """The block without a statement; comments above and behind it stay, above the next one."""
    for place, entry in enumerate(entries):
        line = entry.original
        if isinstance(line, cst.SimpleStatementLine) and anchor in line.body and len(line.body) > 1:
            return [*entries[:place], _without(entry, line, anchor), *entries[place + 1 :]]
    place = _place(entries, anchor)
    if len(entries) == 1:
        message = "nothing would be left of the block"
        raise Refusal(message)
    gone, rest = entries[place].current, [*entries[:place], *entries[place + 1 :]]
    if place < len(rest):
        lines = [*_leading(gone), *_as_line(getattr(gone, "trailing_whitespace", None)), *_leading(rest[place].current)]
        rest[place] = replace(rest[place], current=_with_leading(rest[place].current, lines))
    return rest


def _without(entry: Entry, original: cst.SimpleStatementLine, anchor: cst.CSTNode) -> Entry:
    """A line of several statements without one of them."""
    assert isinstance(entry.current, cst.SimpleStatementLine)
    place = next(i for i, small in enumerate(original.body) if small is anchor)
    left = [*entry.current.body[:place], *entry.current.body[place + 1 :]]
    if place == len(left):
        left[-1] = left[-1].with_changes(semicolon=entry.current.body[place].semicolon)
    small = [*original.body[:place], *original.body[place + 1 :]]
    return Entry(original.with_changes(body=small), entry.current.with_changes(body=left))


def unwrap(entries: list[Entry], anchor: cst.CSTNode) -> list[Entry]:
    """The body of a `with` in its place; a comment behind its header comes to stand above the body."""
    place = _place(entries, anchor)
    outer = entries[place].current
    if not isinstance(outer, cst.With) or not isinstance(outer.body, cst.IndentedBlock):
        message = "only a `with` that has its body on lines of its own can be taken away"
        raise Refusal(message)
    body = list(outer.body.body)
    body[0] = _with_leading(body[0], [*outer.leading_lines, *_as_line(outer.body.header), *_leading(body[0])])
    rest = list(entries[place + 1 :])
    if outer.body.footer and rest:
        rest[0] = replace(rest[0], current=_with_leading(rest[0].current, [*outer.body.footer, *_leading(rest[0].current)]))
    return [*entries[:place], *(Entry(None, statement) for statement in body), *rest]


def _as_line(whitespace: cst.TrailingWhitespace | None) -> list[cst.EmptyLine]:
    """The comment behind some code, on a line of its own."""
    if whitespace is None or whitespace.comment is None:
        return []
    return [cst.EmptyLine(comment=whitespace.comment, newline=whitespace.newline)]


def _split(entries: list[Entry], first: cst.CSTNode, last: cst.CSTNode) -> tuple[list[Entry], list[Entry], list[Entry]]:
    start, end = _edge(entries, first, 0), _edge(entries, last, -1) + 1
    return entries[:start], entries[start:end], entries[end:]


def _block(entries: Sequence[Entry], unit: str) -> cst.IndentedBlock:
    block = cst.IndentedBlock(body=[entry.current for entry in entries], indent=unit)
    plain = block.visit(_PlainBlankLines())
    assert isinstance(plain, cst.IndentedBlock)
    return plain


class _PlainBlankLines(cst.CSTTransformer):
    """Keeps blank lines empty where their block moves to the right."""

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:  # noqa: N802  # libcst's name
        blank = original_node.comment is None and not original_node.whitespace.value
        return updated_node.with_changes(indent=False) if blank else updated_node


def _edge(entries: list[Entry], node: cst.CSTNode, end: int) -> int:
    """The place of a statement that begins (0) or ends (-1) its line: what is put there may leave the others on that line."""
    for place, entry in enumerate(entries):
        if isinstance(entry.original, cst.SimpleStatementLine) and entry.original.body[end] is node:
            return place
    return _place(entries, node)


def _place(entries: list[Entry], node: cst.CSTNode) -> int:
    """The place of a statement in its block; a small statement must have its line for itself."""
    for place, entry in enumerate(entries):
        if entry.original is node:
            return place
        if isinstance(entry.original, cst.SimpleStatementLine) and node in entry.original.body:
            if len(entry.original.body) > 1:
                break
            return place
    message = "the statement shares its line with others"
    raise Refusal(message)


def _leading(statement: cst.BaseStatement) -> list[cst.EmptyLine]:
    return list(getattr(statement, "leading_lines", []))


def _with_leading(statement: cst.BaseStatement, lines: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
    return statement.with_changes(leading_lines=lines)


def _is_future_import(statement: cst.BaseStatement) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.ImportFrom(module=cst.Name("__future__")), *_]):
            return True
    return False


def _gap(statement: cst.BaseStatement) -> list[cst.EmptyLine]:
    """The blank lines that set a statement apart from what is put above it."""
    wide = isinstance(statement, (cst.FunctionDef, cst.ClassDef))
    return [cst.EmptyLine(indent=False)] * (2 if wide else 1)


def _split_leading(statement: cst.BaseStatement) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """What stands above a statement: everything up to the last blank line, and the comments that belong to it."""
    lines = _leading(statement)
    cut = max((i + 1 for i, line in enumerate(lines) if line.comment is None), default=0)
    return lines[:cut], lines[cut:]
