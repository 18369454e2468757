"""`rules` and `explain`: what the tool knows."""

from __future__ import annotations

import sys
from importlib import resources

from ..catalogue import all_rules, find
from ..measured import measured
from ..output.page import page, runs, summary
from ..output.table import print_table
from .files import CLEAN
from .options import UsageError

_SCRIPTS = {"whole-model-save-load": "whole_model_script.txt"}
"""The rules whose fixes leave something behind that only a script can convert: checkpoints that exist already."""


def rules() -> int:
    """List every rule: name, category, the best safety of its fixes, when it runs, and what it finds."""
    rows = [(rule.name, rule.category.value, rule.safety.label, runs(rule), summary(rule)) for rule in all_rules()]
    print_table(("rule", "category", "safety", "runs", "finds"), rows)
    return CLEAN


def explain(name: str) -> int:
    """Print the documentation of a rule, and what was measured of it; raises `UnknownRule`."""
    rule = find(all_rules(), name)
    text = page(rule, measured(rule))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        print(text, end="")
    return CLEAN


def script(name: str) -> int:
    """Print the script that belongs to a rule; raises `UnknownRule`, and `UsageError` for a rule without one."""
    rule = find(all_rules(), name)
    if rule.name not in _SCRIPTS:
        raise UsageError(f"{rule.name} has no script; these rules have one: {', '.join(_SCRIPTS)}")
    print((resources.files(__package__) / _SCRIPTS[rule.name]).read_text(encoding="utf-8"), end="")
    return CLEAN
