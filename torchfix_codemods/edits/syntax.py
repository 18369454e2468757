"""Reading new text as Python, to be sure that it is."""

from __future__ import annotations

import ast
import warnings


class NotPython(Exception):
    """New text that isn't valid Python; the text is the reason, for people."""


def parsed(text: str) -> ast.Module:
    """The syntax tree of new text; raises `NotPython`. The warnings about the user's own code are not this tool's to give."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = f"the result would not be valid Python ({error})"
        raise NotPython(message) from None
