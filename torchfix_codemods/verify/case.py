"""The cases of a rule: folders with the code before, the code after, and what is promised of both."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from .contract import Contract, read_contract

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Report:
    """A finding without a fix that a case must give."""

    line: int
    says: str
    """A part of its message."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: a rewrite when it has an `after`, reports when it lists some, else a refusal: nothing may be found."""

    rule: str
    name: str
    harness: Path
    before: Path
    after: Path | None = None
    contract: Contract | None = None
    reports: tuple[Report, ...] = ()

    @property
    def is_rewrite(self) -> bool:
        """Whether the rule must change the code."""
        return self.after is not None


def cases(fixtures: Path, rule: str) -> list[Case]:
    """The cases of a rule, by name; raises `ValueError` for a folder that is none."""
    folder = fixtures / rule
    if not folder.is_dir():
        return []
    return [_case(folder, place) for place in sorted(folder.iterdir()) if place.is_dir() and not place.name.startswith(("_", "."))]


def _case(folder: Path, place: Path) -> Case:
    before, after, contract, reports = (place / name for name in ("before.py", "after.py", "contract.toml", "report.toml"))
    if not before.exists():
        raise ValueError(f"{place}: before.py is missing")
    if after.exists() != contract.exists():
        raise ValueError(f"{place}: after.py and contract.toml belong together")
    return Case(
        folder.name,
        place.name,
        folder / "harness.py",
        before,
        after if after.exists() else None,
        read_contract(_toml(contract)) if contract.exists() else None,
        _reports(_toml(reports)) if reports.exists() else (),
    )


def _toml(path: Path) -> Mapping[str, Any]:
    data: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return data


def _reports(data: Mapping[str, Any]) -> tuple[Report, ...]:
    return tuple(Report(entry["line"], entry["says"]) for entry in data["findings"])
