"""Which bytes an edit claims for itself: edits whose claims overlap can't be applied in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..source import Span
from .kinds import (
    AddDecorator,
    AddKeyword,
    ChangeMethod,
    ChangeTail,
    DeleteStatement,
    InsertAfter,
    InsertBefore,
    MoveBefore,
    NeedImport,
    RemoveArgument,
    ReplaceExpression,
    ReplaceStatement,
    Unwrap,
    WrapInIf,
    WrapInTry,
    WrapInWith,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kinds import Edit


def claims(edit: Edit) -> tuple[Span, ...]:
    """The spans that only one group may touch in a pass; a point (an empty span) is a place for something new."""
    match edit:
        case AddKeyword(call):
            return (Span(call.end - 1, call.end - 1),)
        case ReplaceExpression(target):
            return (target,)
        case ChangeTail(target, keep):
            return (Span(keep.end, target.end),)
        case AddDecorator(function):
            return (Span(function.start, function.start),)
        case InsertBefore(statement):
            return (Span(statement.start, statement.start),)
        case InsertAfter(statement):
            return (Span(statement.end, statement.end),)
        case MoveBefore(statement, before):
            return (statement, before)
        case WrapInWith(first, last) | WrapInTry(first, last) | WrapInIf(first, last):
            return (Span(first.start, last.end),)
        case Unwrap(statement) | DeleteStatement(statement) | ReplaceStatement(statement):
            return (statement,)
        case RemoveArgument(_, value):
            return (value,)
        case ChangeMethod(call, receiver):
            return (Span(receiver.end, call.end),)
        case NeedImport():
            return ()


def group_claims(group: Sequence[Edit]) -> tuple[Span, ...]:
    """All that a group claims."""
    return tuple(span for edit in group for span in claims(edit))


def clash(first: Sequence[Span], second: Sequence[Span]) -> bool:
    """Whether two groups must not be applied in one pass."""
    return any(a.overlaps(b) for a in first for b in second)


def targets(edit: Edit) -> tuple[Span, ...]:
    """The nodes that an edit is about, to find where in the file it works."""
    match edit:
        case AddKeyword(call) | RemoveArgument(call) | ChangeMethod(call):
            return (call,)
        case ReplaceExpression(target) | ChangeTail(target):
            return (target,)
        case AddDecorator(function):
            return (function,)
        case (
            InsertBefore(statement) | InsertAfter(statement) | Unwrap(statement) | DeleteStatement(statement) | ReplaceStatement(statement)
        ):
            return (statement,)
        case MoveBefore(statement, before):
            return (statement, before)
        case WrapInWith(first, last) | WrapInTry(first, last) | WrapInIf(first, last):
            return (first, last)
        case NeedImport():
            return ()
