"""What a fix changes, as values; `edits.apply` turns them into new text and is the door to libcst."""

from .kinds import (
    AddDecorator,
    AddKeyword,
    ChangeTail,
    DeleteStatement,
    Edit,
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

__all__ = [
    "AddDecorator",
    "AddKeyword",
    "ChangeTail",
    "DeleteStatement",
    "Edit",
    "InsertAfter",
    "InsertBefore",
    "MoveBefore",
    "NeedImport",
    "RemoveArgument",
    "ReplaceExpression",
    "ReplaceStatement",
    "Unwrap",
    "WrapInIf",
    "WrapInTry",
    "WrapInWith",
]
