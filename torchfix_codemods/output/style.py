"""Colours of the terminal, without a library: the path of a clean check must stay light."""

from __future__ import annotations

import os
import sys
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def use_color(choice: str, stream: TextIO = sys.stdout) -> bool:
    """Whether to write colours: `always`, `never`, or (`auto`) on a terminal, unless NO_COLOR is set."""
    if choice != "auto":
        return choice == "always"
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, enabled: bool) -> str:
    """Text in a style, or as it is."""
    return f"\033[{_CODES[style]}m{text}\033[0m" if enabled else text
