"""The behaviour report as one HTML page that needs nothing else: tables, and plots drawn by plotly."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .behaviour import amount, because, others, place_of, summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..verify.judgement import Judged
    from ..verify.report import Cost, Curve, Promise
    from ..verify.script import Comparison

_TEMPLATE = Path(__file__).with_name("behaviour.html.j2")
_VERDICTS = {"shown": "good", "holds": "good", "broken": "bad", "not shown": "bad", "not reached": "unsure", "can't tell": "unsure"}
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Told apart by people who see colours otherwise too (Okabe and Ito)."""
_LINES = {"before": "dot", "after": "solid"}


def as_page(comparison: Comparison, promises: Sequence[Promise], costs: Sequence[Cost], curves: Sequence[Curve]) -> str:
    """The page."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_TEMPLATE.read_text(encoding="utf-8"))
    page: str = template.render(
        command=comparison.command,
        summary=summary(comparison),
        promises=promises,
        regressions=[_row(judged) for judged in comparison.regressions],
        others=[_row(judged) for judged in others(comparison)],
        costs=[(cost.name, amount(cost.before, cost.unit), amount(cost.after, cost.unit)) for cost in costs],
        plots=_plots(curves),
        colors=_VERDICTS,
    )
    return page


def _row(judged: Judged) -> dict[str, str]:
    change = judged.change
    return {
        "kind": judged.kind.value,
        "place": place_of(judged),
        "aspect": change.key.aspect.value,
        "subject": change.key.label,
        "before": change.before,
        "after": change.after,
        "because": because(judged),
    }


def _plots(curves: Sequence[Curve]) -> list[str]:
    """A drawing for each title; the first brings the library with it."""
    titles = groupby(sorted(curves, key=lambda curve: curve.title), key=lambda curve: curve.title)
    return [_plot(title, list(found), with_library=number == 0) for number, (title, found) in enumerate(titles)]


def _plot(title: str, curves: Iterable[Curve], with_library: bool) -> str:
    """The curves of one title, before dotted and after solid, one colour for each series."""
    import plotly.graph_objects as go

    figure = go.Figure(layout=_layout(title))
    colors: dict[str, str] = {}
    for curve in curves:
        color = colors.setdefault(curve.name, _COLORS[len(colors) % len(_COLORS)])
        line = {"color": color, "dash": _LINES[curve.side], "width": 3 if curve.side == "before" else 1.5}
        figure.add_scatter(x=curve.x, y=curve.y, mode="lines", name=f"{curve.name}, {curve.side}", line=line)
    html: str = figure.to_html(full_html=False, include_plotlyjs=with_library, config={"displaylogo": False, "responsive": True})
    return html


def _layout(title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 15}},
        "xaxis": {"title": {"text": "event"}},
        "legend": {"orientation": "h", "y": -0.25},
        "margin": {"l": 60, "r": 20, "t": 50, "b": 40},
        "height": 380,
        "template": "plotly_white",
    }
