"""The cases of a rule: folders with the code before, the code after, and what is promised of both."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from .contract import Contract, read_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class FixtureError(Exception):
    """A fixture that isn't one; the text names the file, the mistake, and what is expected."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Report:
    """A finding without a fix that a case must give."""

    line: int
    says: str
    """A part of its message."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: reports when it lists some, else a rewrite when it has an `after`, else a refusal: nothing may be found.

    The `after` of a report is what its message advises, written by hand: the contract then proves the advice.
    """

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
        return self.after is not None and not self.reports

    @property
    def is_refusal(self) -> bool:
        """Whether the rule must find nothing at all."""
        return not self.is_rewrite and not self.reports


def cases(fixtures: Path, rule: str) -> list[Case]:
    """The cases of a rule, by name; raises `FixtureError` for a folder that is none."""
    folder = (fixtures / rule).resolve()  # each side runs in a folder of its own
    if not folder.is_dir():
        return []
    places = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith(("_", ".")))
    return [_case(folder, place) for place in places]


def _case(folder: Path, place: Path) -> Case:
    before, after, contract, reports, harness = (
        *(place / name for name in ("before.py", "after.py", "contract.toml", "report.toml")),
        folder / "harness.py",
    )
    if not before.exists():
        raise FixtureError(f"{place}: before.py is missing; it holds the code that the rule reads")
    if after.exists() != contract.exists():
        raise FixtureError(f"{place}: after.py and contract.toml belong together; a refusal has neither")
    if after.exists() and not harness.exists():
        raise FixtureError(f"{place}: code with an after.py needs {harness.name} in the folder of its rule")
    return Case(
        folder.name,
        place.name,
        harness,
        before,
        after if after.exists() else None,
        _read(contract, read_contract) if contract.exists() else None,
        _read(reports, _reports) if reports.exists() else (),
    )


def _read(path: Path, build: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        return build(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise FixtureError(f"{path}: {error}") from error


def _reports(data: Mapping[str, Any]) -> tuple[Report, ...]:
    entries = data.get("findings", [])
    if not entries or any(set(entry) != {"line", "says"} for entry in entries):
        raise ValueError('report.toml lists findings = [{ line = 1, says = "a part of the message" }]')
    return tuple(Report(entry["line"], entry["says"]) for entry in entries)


def digest(case: Case) -> str:
    """Tells whether a case is still what it was: its files, and the harness."""
    files = sorted(path for path in case.before.parent.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    content = hashlib.sha256()
    for path in (case.harness, *files):
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()[:12]
