"""The quotes of new strings: those of the code around, and never those of an f-string that they stand in."""

from __future__ import annotations

from typing import TypeVar

import libcst as cst

from .parse import Refusal

Expression = TypeVar("Expression", bound=cst.BaseExpression)


def requoted(code: Expression, taken: frozenset[str], preferred: str | None = None) -> Expression:
    """New code with `preferred` quotes where they fit; raises `Refusal` where every quote that fits is in `taken`."""
    return code.visit(_Requoting(taken, preferred))  # type: ignore[return-value]  # the visitor changes strings only


class _Requoting(cst.CSTTransformer):
    def __init__(self, taken: frozenset[str], preferred: str | None) -> None:
        super().__init__()
        self._taken, self._preferred = taken, preferred

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:  # noqa: N802  # libcst's name
        own = original_node.quote
        wanted = [self._preferred or own, own, "'", '"'] if len(own) == 1 else [own]
        for quote in wanted:
            if quote[0] not in self._taken and (quote == own or quote not in original_node.raw_value):
                return updated_node.with_changes(value=f"{original_node.prefix}{quote}{original_node.raw_value}{quote}")
        message = "both kinds of quote are in use around it"
        raise Refusal(message)

    def leave_FormattedString(self, original_node: cst.FormattedString, updated_node: cst.FormattedString) -> cst.FormattedString:  # noqa: N802  # libcst's name
        if original_node.end[0] in self._taken:
            message = "its quotes are in use around it"
            raise Refusal(message)
        return updated_node
