"""Edits of expressions: each takes the node as it stands after edits inside it, and gives the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from .parse import Refusal, parse_expression
from .quotes import requoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kinds import ChangeTail, ReplaceExpression

_ATOMS = (
    cst.Name, cst.Call, cst.Attribute, cst.Subscript, cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp,
    cst.SimpleString, cst.FormattedString, cst.Ellipsis,
)  # fmt: skip
_NUMBERS = (cst.Integer, cst.Float, cst.Imaginary)
_LOOSE = (cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp)
"""Expressions that are at home in few places without parentheses."""
_DELIMITED = (cst.Arg, cst.Element, cst.Index, cst.DictElement)
"""Places between brackets and commas, where parentheses say nothing."""
_OPEN = (
    *_DELIMITED, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Return, cst.Expr, cst.If, cst.While, cst.Assert, cst.Param, cst.WithItem,
    cst.Lambda, cst.Decorator,
)  # fmt: skip
"""Places that take any expression that is not loose."""


def replace_expression(node: cst.BaseExpression, edit: ReplaceExpression, taken: frozenset[str], parent: cst.CSTNode) -> cst.BaseExpression:
    """The new expression, in the old one's parentheses, or in new ones where the place needs them."""
    new = requoted(parse_expression(edit.code), taken)
    if node.lpar:
        if isinstance(parent, _DELIMITED) and isinstance(new, _ATOMS) and not _over_lines(node):
            return new
        return new.with_changes(lpar=[*node.lpar, *new.lpar], rpar=[*new.rpar, *node.rpar])
    return new if new.lpar or _fits(new, edit.code, parent) else _parenthesised(new)


def _fits(new: cst.BaseExpression, code: str, parent: cst.CSTNode) -> bool:
    """Whether the parser reads a new expression at its place as one, without parentheses."""
    if isinstance(parent, cst.FormattedStringExpression) and code.startswith("{"):
        return False  # two braces would be text
    if isinstance(new, _NUMBERS):
        return not isinstance(parent, cst.Attribute)
    return isinstance(new, _ATOMS) or (isinstance(parent, _OPEN) and not isinstance(new, _LOOSE))


def _over_lines(node: cst.BaseExpression) -> bool:
    spaces = [paren.whitespace_after for paren in node.lpar] + [paren.whitespace_before for paren in node.rpar]
    return any(isinstance(space, cst.ParenthesizedWhitespace) for space in spaces)


def change_tail(node: cst.BaseExpression, steps: Sequence[str], edit: ChangeTail) -> cst.BaseExpression:
    """What `steps` lead to from the end of the chain, followed by the new calls; line breaks stay before the new tail."""
    kept, dot = node, cst.Dot()
    for step in steps:
        dot = kept.dot if isinstance(kept, cst.Attribute) else dot
        kept = getattr(kept, step)
    new = _with_calls(kept, edit.calls, dot)
    if kept is node or not node.lpar:
        return new
    return new.with_changes(lpar=[*node.lpar, *new.lpar], rpar=[*new.rpar, *node.rpar])


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
    if names and not value.lpar and not isinstance(value, _ATOMS):
        value = _parenthesised(value)
    for name in names:
        value = cst.Call(cst.Attribute(value=value, attr=cst.Name(name), dot=dot))
        dot = cst.Dot()
    return value


def _parenthesised(value: cst.BaseExpression) -> cst.BaseExpression:
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
