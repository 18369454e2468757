"""Edits of expressions: each takes the node as it stands after edits inside it, and gives the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from .parse import Refusal, parse_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kinds import AddKeyword, ChangeTail, ReplaceExpression

_ATOMS = (
    cst.Name, cst.Call, cst.Attribute, cst.Subscript, cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp,
    cst.SimpleString, cst.FormattedString, cst.Ellipsis,
)  # fmt: skip
_NO_SPACE = cst.SimpleWhitespace("")


def add_keyword(call: cst.Call, edit: AddKeyword, quotes: frozenset[str]) -> cst.Call:
    """Put `name=value` behind the other arguments, laid out as the last of them is; `quotes` are taken by f-strings around."""
    value = _quoted(parse_expression(edit.value), call, quotes)
    equal = cst.AssignEqual(whitespace_before=_NO_SPACE, whitespace_after=_NO_SPACE)
    new = cst.Arg(value=value, keyword=cst.Name(edit.name), equal=equal)
    arguments = _parenthesised_generator(call.args)
    place = next((i for i, argument in enumerate(arguments) if argument.star == "**"), len(arguments))
    if place < len(arguments):
        comma = arguments[place - 1].comma if place else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        return call.with_changes(args=[*arguments[:place], new.with_changes(comma=comma), *arguments[place:]])
    if not arguments:
        return call.with_changes(args=[new])
    return call.with_changes(args=[*arguments[:-1], *_appended(arguments, new)])


def _appended(arguments: Sequence[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    last = arguments[-1]
    if isinstance(last.comma, cst.Comma):
        # A trailing comma: the new argument gets one too, and what stood before the parenthesis stays there.
        between = arguments[-2].comma if len(arguments) > 1 else None
        after = between.whitespace_after if isinstance(between, cst.Comma) else _own_line(last.comma, new)
        closing = last.comma
        if _has_comment(closing.whitespace_after):
            after, closing = closing.whitespace_after, closing.with_changes(whitespace_after=_closing(closing.whitespace_after))
            after = _with_argument_indent(after, between)
        return [last.with_changes(comma=closing.with_changes(whitespace_after=after)), new.with_changes(comma=closing)]
    between = arguments[-2].comma if len(arguments) > 1 else None
    space = (
        between.whitespace_after
        if isinstance(between, cst.Comma) and not _has_comment(between.whitespace_after)
        else cst.SimpleWhitespace(" ")
    )
    after_arg = last.whitespace_after_arg
    if _has_comment(after_arg):
        # `p  # path` on its own line: the comment stays behind its argument and the comma goes between them.
        space = _with_argument_indent(after_arg, between)
        return [
            last.with_changes(comma=cst.Comma(whitespace_after=space), whitespace_after_arg=_NO_SPACE),
            new.with_changes(whitespace_after_arg=_closing(after_arg)),
        ]
    return [
        last.with_changes(comma=cst.Comma(whitespace_after=space), whitespace_after_arg=_NO_SPACE),
        new.with_changes(whitespace_after_arg=after_arg),
    ]


def _own_line(comma: cst.Comma, _: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """With a single argument and a trailing comma there is no layout to copy but the one after the parenthesis."""
    return cst.SimpleWhitespace(" ") if isinstance(comma.whitespace_after, cst.SimpleWhitespace) else comma.whitespace_after


def _has_comment(space: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace) and (
        space.first_line.comment is not None or any(line.comment is not None for line in space.empty_lines)
    )


def _closing(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """The line break before a closing parenthesis, without the comment."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    plain = space.first_line.with_changes(comment=None, whitespace=_NO_SPACE)
    return space.with_changes(first_line=plain, empty_lines=[])


def _with_argument_indent(space: cst.BaseParenthesizableWhitespace, between: object) -> cst.BaseParenthesizableWhitespace:
    """The comment's line, continued at the indentation of the arguments before."""
    model = between.whitespace_after if isinstance(between, cst.Comma) else None
    if isinstance(space, cst.ParenthesizedWhitespace) and isinstance(model, cst.ParenthesizedWhitespace):
        return space.with_changes(last_line=model.last_line, indent=model.indent)
    if isinstance(space, cst.ParenthesizedWhitespace) and space.indent:
        return space.with_changes(last_line=cst.SimpleWhitespace(space.last_line.value + "    "))
    return space


def _parenthesised_generator(arguments: Sequence[cst.Arg]) -> Sequence[cst.Arg]:
    """`f(x for x in y)`: a generator beside another argument needs its own parentheses."""
    if len(arguments) == 1 and isinstance(arguments[0].value, cst.GeneratorExp) and not arguments[0].value.lpar:
        value = arguments[0].value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return [arguments[0].with_changes(value=value)]
    return arguments


def _quoted(value: cst.BaseExpression, call: cst.Call, taken: frozenset[str]) -> cst.BaseExpression:
    """A new string in the quotes that the call uses, and never in those of an f-string around it."""
    if not isinstance(value, cst.SimpleString):
        return value
    used = {a.value.quote[-1] for a in call.args if isinstance(a.value, (cst.SimpleString,))}
    preferred = "'" if used == {"'"} else '"'
    for quote in (preferred, "'", '"'):
        if quote not in taken:
            return value.with_changes(value=f"{quote}{value.raw_value}{quote}")
    message = "both kinds of quote are in use around it"
    raise Refusal(message)


def replace_expression(node: cst.BaseExpression, edit: ReplaceExpression, quotes: frozenset[str]) -> cst.BaseExpression:
    """The new expression, in the old one's parentheses where it needs any."""
    new = parse_expression(edit.code)
    if isinstance(new, cst.SimpleString):
        new = _in_free_quotes(new, quotes)
    if not node.lpar or (isinstance(new, _ATOMS) and not any(_has_comment(paren.whitespace_after) for paren in node.lpar)):
        return new
    return new.with_changes(lpar=[*node.lpar, *new.lpar], rpar=[*new.rpar, *node.rpar])


def _in_free_quotes(value: cst.SimpleString, taken: frozenset[str]) -> cst.SimpleString:
    free = next((quote for quote in (value.quote, "'", '"') if quote not in taken), None)
    if free is None:
        message = "both kinds of quote are in use around it"
        raise Refusal(message)
    return value.with_changes(value=f"{free}{value.raw_value}{free}")


def change_tail(node: cst.BaseExpression, steps: Sequence[str], edit: ChangeTail) -> cst.BaseExpression:
    """What `steps` lead to from the end of the chain, followed by the new calls; line breaks stay before the new tail."""
    kept, dot = node, cst.Dot()
    for step in steps:
        dot = kept.dot if isinstance(kept, cst.Attribute) else dot
        kept = getattr(kept, step)
    if kept is node:
        return _with_calls(_as_receiver(kept), edit.calls, cst.Dot())
    inner = _with_calls(_as_receiver(kept) if edit.calls else kept, edit.calls, dot)
    if not node.lpar:
        return inner
    own = [] if edit.calls else inner.lpar
    return inner.with_changes(lpar=[*node.lpar, *own], rpar=[*([] if edit.calls else inner.rpar), *node.rpar])


def steps_to(node: cst.BaseExpression, kept: cst.BaseExpression) -> list[str]:
    """The fields that lead from a chain to the expression that begins it."""
    steps: list[str] = []
    while node is not kept:
        step = "func" if isinstance(node, cst.Call) else "value" if isinstance(node, (cst.Attribute, cst.Subscript)) else ""
        if not step:
            message = "the part to keep does not begin the chain"
            raise Refusal(message)
        steps.append(step)
        node = getattr(node, step)
    return steps


def _with_calls(value: cst.BaseExpression, names: Sequence[str], dot: cst.Dot) -> cst.BaseExpression:
    for name in names:
        value = cst.Call(cst.Attribute(value=value, attr=cst.Name(name), dot=dot))
        dot = cst.Dot()
    return value


def _as_receiver(value: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that a dot may follow."""
    if value.lpar or isinstance(value, _ATOMS):
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
