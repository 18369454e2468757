"""The kinds of edit. Each says what is to change, by byte span, and nothing of how it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ..source import Span


@dataclass(frozen=True, slots=True)
class AddKeyword:
    """Add `name=value` to the call at `call`, after its positional arguments and before any `**mapping`."""

    call: Span
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ReplaceExpression:
    """Put the expression `code` where the expression at `target` stands, in parentheses where the place needs them."""

    target: Span
    code: str


@dataclass(frozen=True, slots=True)
class ChangeTail:
    """Keep the expression at `keep`, which begins the chain at `target`, and replace the rest by `.name()` calls.

    `x.data` with keep `x` becomes `x.detach()` for calls ("detach",), and `x` for no calls; with keep equal to
    target the calls are appended (`loss` becomes `loss.detach()`). Line breaks and comments of the chain stay.
    """

    target: Span
    keep: Span
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddDecorator:
    """Decorate the function whose `def` starts at `function`, innermost (next to `def`); `code` has no `@`."""

    function: Span
    code: str


@dataclass(frozen=True, slots=True)
class InsertBefore:
    """Put the statements of `code` (lines, not indented) above the statement at `statement` and the comments directly above it."""

    statement: Span
    code: str
    apart: bool = False
    """Whether a blank line follows the new statements; two before a function or class."""


@dataclass(frozen=True, slots=True)
class InsertAfter:
    """Put the statements of `code` (lines, not indented) directly after the statement at `statement`."""

    statement: Span
    code: str


@dataclass(frozen=True, slots=True)
class MoveBefore:
    """Move the statement at `statement`, with its comments, to directly before the statement at `before`.

    `before` stands in the same block, or in one around it, whose indentation the statement then takes.
    """

    statement: Span
    before: Span


@dataclass(frozen=True, slots=True)
class WrapInWith:
    """Put the statements from `first` to `last` (of one block) into one `with item:`."""

    first: Span
    last: Span
    item: str


@dataclass(frozen=True, slots=True)
class WrapInTry:
    """Put the statements from `first` to `last` (of one block) into a `try`, and `cleanup` into its `finally`."""

    first: Span
    last: Span
    cleanup: str


@dataclass(frozen=True, slots=True)
class WrapInIf:
    """Put the statements from `first` to `last` (of one block) into one `if test:`."""

    first: Span
    last: Span
    test: str


@dataclass(frozen=True, slots=True)
class Unwrap:
    """Put the body of the `with` at `statement` in its place, one step further out."""

    statement: Span


@dataclass(frozen=True, slots=True)
class DeleteStatement:
    """Take the statement at `statement` out of its block; comments above and behind it stay, above the next statement."""

    statement: Span


@dataclass(frozen=True, slots=True)
class ReplaceStatement:
    """Put the statements of `code` (lines, not indented) where the statement at `statement` stands; its comments stay."""

    statement: Span
    code: str


@dataclass(frozen=True, slots=True)
class RemoveArgument:
    """Take the argument whose value is the expression at `value` out of the call at `call`, with its keyword."""

    call: Span
    value: Span


@dataclass(frozen=True, slots=True)
class ChangeMethod:
    """Call another method of the same receiver: `x.cuda(k=v)` becomes `x.to(first, k=v)`; line breaks of the chain stay."""

    call: Span
    receiver: Span
    name: str
    first: str = ""
    """A new argument before the others; none when empty."""


@dataclass(frozen=True, slots=True)
class NeedImport:
    """Make sure that `import module` stands at top level before the code of this group; added when it does not."""

    module: str


Edit: TypeAlias = (
    AddKeyword
    | ReplaceExpression
    | ChangeTail
    | AddDecorator
    | InsertBefore
    | InsertAfter
    | MoveBefore
    | WrapInWith
    | WrapInTry
    | WrapInIf
    | Unwrap
    | DeleteStatement
    | ReplaceStatement
    | RemoveArgument
    | ChangeMethod
    | NeedImport
)
