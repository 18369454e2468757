"""`rules` and `explain`: what the tool knows."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

from ..catalogue import all_rules, find
from ..output.table import print_table
from .files import CLEAN

if TYPE_CHECKING:
    from ..rule import Rule


def rules() -> int:
    """List every rule: name, category, the best safety of its fixes, and what it finds."""
    rows = [(rule.name, rule.category.value, rule.safety.label, documentation(rule).splitlines()[0]) for rule in all_rules()]
    print_table(("rule", "category", "safety", "finds"), rows)
    return CLEAN


def explain(name: str) -> int:
    """Print the documentation of a rule; raises `UnknownRule`."""
    rule = find(all_rules(), name)
    text = f"# {rule.name}\n\n{documentation(rule)}\n"
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        print(text, end="")
    return CLEAN


def documentation(rule: Rule) -> str:
    """The documentation of a rule: the docstring of its class."""
    return inspect.cleandoc(type(rule).__doc__ or "")
