"""The pages about rules, in Markdown: what `explain` prints, and what stands in `docs/rules`."""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING

from ..measured import NOT_VERIFIED
from .text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..measured import Measured, Row
    from ..rule import Rule

_COLUMNS = ("case", "device", "observation", "before", "after", "promised", "verdict")
_WIDTH = 125
"""Columns of text in a document."""


def documentation(rule: Rule) -> str:
    """The documentation of a rule: the docstring of its class."""
    return inspect.cleandoc(type(rule).__doc__ or "")


def summary(rule: Rule) -> str:
    """What a rule finds: the first line of its documentation."""
    return documentation(rule).partition("\n")[0].rstrip(".")


def runs(rule: Rule) -> str:
    """When a rule runs."""
    return "when selected" if rule.optional else "always"


def page(rule: Rule, measured: Measured | None) -> str:
    """All about one rule."""
    first, _, rest = documentation(rule).partition("\n")
    asked = f" · optional: runs only with `--select {rule.name}`" if rule.optional else ""
    facts = f"Category {rule.category.value} · best fix: {rule.safety.label}{asked}"
    return "\n\n".join([f"# {rule.name}", first, facts, rest.strip(), *([_proof(measured)] if measured else [])]) + "\n"


def _proof(measured: Measured) -> str:
    """The contract table, and what else the fixtures show."""
    acts = [count(number, noun) for number, noun in ((measured.rewrites, "rewrite"), (measured.reports, "report")) if number]
    silent = f"{count(measured.refusals, 'case')} in which the rule has to stay silent"
    told = [f"Tested on {', '.join(acts)}, and {silent}. The code before and after was executed, and this was seen."]
    if measured.by_hand:
        told.append("The new code of cases marked * follows the advice of a report, by hand.")
    if any(row.verdict == NOT_VERIFIED for row in measured.rows):
        told.append(f"What is *{NOT_VERIFIED}* needs a device that wasn't there.")
    rows = [row._replace(case=row.case + "*" * (row.case in measured.by_hand)) for row in measured.rows]
    return "\n\n".join(["## Proof", " ".join(told), "\n".join(table(_COLUMNS, [_marked(row) for row in rows]))])


def _marked(row: Row) -> list[str]:
    """What is code, as code."""
    return [_code(cell) if name in {"before", "after", "promised"} and cell else cell for name, cell in zip(_COLUMNS, row, strict=True)]


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table whose columns stand below each other in plain text too."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in cells]
    yield lines[0]
    yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    yield from lines[1:]


def overview(rules: Iterable[Rule], folder: str) -> Iterator[str]:
    """The lines of a table of rules, with links to their pages in a folder."""
    rows = [(f"[`{r.name}`]({folder}{r.name}.md)", summary(r), r.safety.label + ", optional" * r.optional) for r in rules]
    return table(("rule", "finds", "best fix"), rows)


def names(rules: Sequence[Rule]) -> Iterator[str]:
    """The lines of a list of rules, by category."""
    for category, mine in _by_category(rules):
        text = f"* **{category}**: {', '.join(f'`{rule.name}`' for rule in mine)}"
        yield from textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


def _by_category(rules: Sequence[Rule]) -> Iterator[tuple[str, list[Rule]]]:
    categories = sorted({rule.category for rule in rules}, key=list(type(rules[0].category)).index)
    for category in categories:
        yield category.value, [rule for rule in rules if rule.category is category]


def index(rules: Sequence[Rule]) -> str:
    """The pages, by category."""
    parts = ["# Rules", f"{count(len(rules), 'rule')}; those that are optional run only when they are selected by name."]
    for category, mine in _by_category(rules):
        parts += [f"## {category}", "\n".join(overview(mine, ""))]
    return "\n\n".join(parts) + "\n"
