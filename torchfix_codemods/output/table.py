"""Tables: with rich on a terminal, one line a row when piped."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Show rows under their column names; greppable and without frames when the output is no terminal."""
    if not sys.stdout.isatty():
        widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
        for row in [columns, *rows]:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title or None, title_justify="left", header_style="bold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
