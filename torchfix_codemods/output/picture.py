"""A recorded picture of a terminal, for documents."""

from __future__ import annotations

import io

WIDTH = 110
"""Columns."""


def terminal_picture(command: str, diff: bytes) -> str:
    """An SVG of a terminal in which a command has shown a diff; the same for the same input."""
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    console.print(Syntax(diff.decode().rstrip("\n"), "diff", theme="ansi_dark", background_color="default"))
    return console.export_svg(title="torchmod", unique_id="torchmod")
