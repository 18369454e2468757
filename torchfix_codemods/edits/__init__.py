"""What a fix changes, as values; `edits.apply` turns them into new text and is the door to libcst."""

from .kinds import (
    AddDecorator,
    AddKeyword,
    ChangeTail,
    Edit,
    InsertAfter,
    InsertBefore,
    MoveBefore,
    NeedImport,
    ReplaceExpression,
    WrapInTry,
    WrapInWith,
)

__all__ = [
    "AddDecorator",
    "AddKeyword",
    "ChangeTail",
    "Edit",
    "InsertAfter",
    "InsertBefore",
    "MoveBefore",
    "NeedImport",
    "ReplaceExpression",
    "WrapInTry",
    "WrapInWith",
]
