"""What `apply --verify-with` has found, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table import print_table
from .text import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..blame.units import Unit
    from ..blame.verdict import Blame, Verdict

_LOGS = 10
"""Fixes whose logs are shown."""


def print_verdict(verdict: Verdict, command: str, budget: int) -> None:
    """Print how many fixes were kept, those that were left out with the reason, and the logs of those to blame."""
    total = len(verdict.kept) + len(verdict.guilty) + len(verdict.untried) + len(verdict.dependent)
    print(f"`{command}` passes with {len(verdict.kept):,} of {count(total, 'fix')}; {count(verdict.runs, 'run')} made.")
    for what in verdict.flaky:
        print(f"The command is flaky: with {what} it passed and failed on the same files.")
    _print_units("It fails with each of these, which are left out:", [blame.unit for blame in verdict.guilty])
    _print_units("Left out too, since they build on others that are left out:", verdict.dependent)
    _print_units(f"Left out untried, since the {budget} runs of --budget are made:", verdict.untried)
    for blame in verdict.guilty[:_LOGS]:
        _print_log(blame)
    if len(verdict.guilty) > _LOGS:
        print(f"\n(the logs of {len(verdict.guilty) - _LOGS} more are not shown)")


def _print_units(title: str, units: Sequence[Unit]) -> None:
    if units:
        print(f"\n{title}")
        print_table(("rule", "place", "message"), [(unit.rule, _place(unit), unit.message) for unit in units])


def _place(unit: Unit) -> str:
    return ", ".join(f"{path}:{position.line}" for path, position in unit.places)


def _print_log(blame: Blame) -> None:
    print(f"\n{_place(blame.unit)}: {blame.unit.rule}: {blame.reason}")
    for line in blame.log.splitlines():
        print(f"    {line}")
