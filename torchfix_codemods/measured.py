"""What was measured of a rule: the table of its contracts, kept beside its code, to be shown where nothing can be executed."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .rule import Rule

HOLDS, NOT_VERIFIED = "holds", "not verified"
_NUMBER = re.compile(r"-?\b(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)\b")


class Row(NamedTuple):
    """One observation of one case on one device, as people read it."""

    case: str
    device: str
    observation: str
    before: str
    after: str
    promised: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of all cases of one rule."""

    rewrites: int = 0
    reports: int = 0
    refusals: int = 0
    by_hand: tuple[str, ...] = ()
    """Cases whose new code follows a report's advice and was written by hand."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """What each executed case was when it was measured."""
    rows: tuple[Row, ...] = ()

    def of(self, case: str, device: str) -> tuple[Row, ...]:
        """What was measured of one case on one device."""
        return tuple(row for row in self.rows if (row.case, row.device) == (case, device))


def place(rule: Rule) -> Path:
    """Where the table of a rule stands: in a folder beside its code."""
    code = sys.modules[type(rule).__module__].__file__ or ""
    return Path(code).parent / "measured" / f"{rule.name}.json"


def measured(rule: Rule) -> Measured | None:
    """The table of a rule; None where it was never measured."""
    path = place(rule)
    return loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def loads(text: str) -> Measured:
    """A table from its text."""
    data = json.loads(text)
    rows = tuple(Row(*row) for row in data.pop("rows"))
    return Measured(**{**data, "by_hand": tuple(data["by_hand"]), "rows": rows})


def dumps(table: Measured) -> str:
    """A table as text, one line for each row, so that changes can be read."""
    head = {name: getattr(table, name) for name in ("rewrites", "reports", "refusals", "by_hand", "digests")}
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table.rows)
    return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "rows": [\n{rows}\n]}}\n'


def differences(stored: Sequence[Row], now: Sequence[Row]) -> list[tuple[Row | None, Row | None]]:
    """The rows in which two measurements of a case differ by more than another machine explains."""
    old, new = ({row.observation: row for row in rows} for rows in (stored, now))
    names = [*old, *(name for name in new if name not in old)]
    return [(old.get(name), new.get(name)) for name in names if name not in old or name not in new or not _agree(old[name], new[name])]


def _agree(first: Row, second: Row) -> bool:
    if first._replace(before="", after="") != second._replace(before="", after=""):
        return False
    # How much memory is saved, or how many nodes a graph has, is torch's to decide: only the direction is promised.
    tolerance = math.inf if first.promised.startswith(("less", "more")) else 0.02
    return all(_close(a, b, tolerance) for a, b in ((first.before, second.before), (first.after, second.after)))


def _close(first: str, second: str, tolerance: float) -> bool:
    """Whether two texts are equal but for the last digits of the numbers in them."""
    if _NUMBER.split(first) != _NUMBER.split(second):
        return False
    pairs = zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=True)
    return all(a == b or math.isclose(float(a), float(b), rel_tol=tolerance, abs_tol=tolerance / 10) for a, b in pairs)
