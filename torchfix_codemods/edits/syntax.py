"""Reading new text as Python, to be sure that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..source import syntax_tree

if TYPE_CHECKING:
    import ast


class NotPython(Exception):
    """New text that isn't valid Python; the text is the reason, for people."""


def parsed(text: str) -> ast.Module:
    """The syntax tree of new text; raises `NotPython`."""
    try:
        return syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = f"the result would not be valid Python ({error})"
        raise NotPython(message) from None
