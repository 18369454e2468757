"""Arguments of a call: a new one, laid out as the others already are, and one less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from .parse import Refusal, parse_expression
from .quotes import requoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kinds import AddKeyword, ChangeMethod

    Space = cst.BaseParenthesizableWhitespace

_NO_SPACE = cst.SimpleWhitespace("")
_ONE_SPACE = cst.SimpleWhitespace(" ")


def add_keyword(call: cst.Call, edit: AddKeyword, taken: frozenset[str], unit: str) -> cst.Call:
    """Put `name=value` behind the other arguments, before any `**mapping`; `taken` are the quotes of f-strings around."""
    if any(argument.keyword is not None and argument.keyword.value == edit.name for argument in call.args):
        message = f"the call has an argument `{edit.name}` already"
        raise Refusal(message)
    new = _argument(call, edit, taken)
    arguments = _parenthesised_generator(call.args)
    place = next((i for i, argument in enumerate(arguments) if argument.star == "**"), len(arguments))
    if place < len(arguments):
        between = _without_comments(_comma_space(arguments[place - 1])) if place else _ONE_SPACE
        return call.with_changes(args=[*arguments[:place], new.with_changes(comma=_comma(between)), *arguments[place:]])
    if not arguments:
        return call.with_changes(args=[new])
    return call.with_changes(args=[*arguments[:-1], *_appended(call, arguments, new, unit)])


def argument_place(call: cst.Call, value: cst.BaseExpression) -> int:
    """The place of the argument that has a value; raises `Refusal` when the call has none."""
    for place, argument in enumerate(call.args):
        if argument.value is value:
            return place
    message = "the argument could not be located exactly"
    raise Refusal(message)


def remove_argument(call: cst.Call, place: int) -> cst.Call:
    """The call without one argument; what stood before the closing parenthesis still does."""
    removed, rest = call.args[place], [*call.args[:place], *call.args[place + 1 :]]
    if place == len(rest) and rest:
        rest[-1] = rest[-1].with_changes(comma=removed.comma, whitespace_after_arg=removed.whitespace_after_arg)
    return call.with_changes(args=rest)


def change_method(call: cst.Call, edit: ChangeMethod) -> cst.Call:
    """The call of another method of its receiver, with a new first argument."""
    if not isinstance(call.func, cst.Attribute):
        message = "a method call was expected"
        raise Refusal(message)
    func = call.func.with_changes(attr=cst.Name(edit.name))
    if not edit.first:
        return call.with_changes(func=func)
    comma = _comma(_ONE_SPACE) if call.args else cst.MaybeSentinel.DEFAULT
    return call.with_changes(func=func, args=[cst.Arg(parse_expression(edit.first), comma=comma), *call.args])


def _argument(call: cst.Call, edit: AddKeyword, taken: frozenset[str]) -> cst.Arg:
    used = {a.value.quote for a in call.args if isinstance(a.value, cst.SimpleString)}
    value = requoted(parse_expression(edit.value), taken, preferred="'" if used == {"'"} else '"')
    equal = cst.AssignEqual(whitespace_before=_NO_SPACE, whitespace_after=_NO_SPACE)
    return cst.Arg(value=value, keyword=cst.Name(edit.name), equal=equal)


def _appended(call: cst.Call, arguments: Sequence[cst.Arg], new: cst.Arg, unit: str) -> list[cst.Arg]:
    """The last argument and the new one; the last keeps its comments, the new one stands before what led to the parenthesis."""
    last, between = arguments[-1], _between(call, arguments)
    trailing = isinstance(last.comma, cst.Comma)
    end = _comma_space(last) if trailing else last.whitespace_after_arg
    gap, end = (_at_indentation_of(end, between, unit), _without_comments(end)) if _has_comment(end) else (between, end)
    if trailing:
        return [last.with_changes(comma=_comma(gap)), new.with_changes(comma=_comma(end))]
    return [last.with_changes(comma=_comma(gap), whitespace_after_arg=_NO_SPACE), new.with_changes(whitespace_after_arg=end)]


def _between(call: cst.Call, arguments: Sequence[cst.Arg]) -> Space:
    """What stands between the arguments: a space, or the line break that puts each on its own line."""
    if len(arguments) > 1:
        return _without_comments(_comma_space(arguments[-2]))
    first = _without_comments(call.whitespace_before_args)
    return first if isinstance(first, cst.ParenthesizedWhitespace) else _ONE_SPACE


def _comma_space(argument: cst.Arg) -> Space:
    return argument.comma.whitespace_after if isinstance(argument.comma, cst.Comma) else _ONE_SPACE


def _comma(after: Space) -> cst.Comma:
    return cst.Comma(whitespace_after=after)


def _has_comment(space: Space) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace) and (
        space.first_line.comment is not None or any(line.comment is not None for line in space.empty_lines)
    )


def _without_comments(space: Space) -> Space:
    """The same line break, alone."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    return space.with_changes(first_line=space.first_line.with_changes(comment=None, whitespace=_NO_SPACE), empty_lines=[])


def _at_indentation_of(space: Space, between: Space, unit: str) -> Space:
    """A line break with comments, continued where the other arguments begin, or one step in from the parenthesis."""
    assert isinstance(space, cst.ParenthesizedWhitespace)
    if isinstance(between, cst.ParenthesizedWhitespace):
        return space.with_changes(indent=between.indent, last_line=between.last_line)
    return space.with_changes(last_line=cst.SimpleWhitespace(space.last_line.value + unit))


def _parenthesised_generator(arguments: Sequence[cst.Arg]) -> Sequence[cst.Arg]:
    """`f(x for x in y)`: a generator beside another argument needs its own parentheses."""
    if len(arguments) == 1 and isinstance(arguments[0].value, cst.GeneratorExp) and not arguments[0].value.lpar:
        value = arguments[0].value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return [arguments[0].with_changes(value=value)]
    return arguments
