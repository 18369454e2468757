"""What executions of the contracts gave: for each case, device and torch the last one, kept in a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Execution(NamedTuple):
    """The last execution of one case on one device with one torch."""

    device: str
    torch: str
    rule: str
    case: str
    name: str
    """What the device is called."""
    python: str
    date: str
    """The day, as ISO 8601 has it."""
    promises: int
    """How many were judged."""
    verdict: str
    digest: str
    """What the case was."""

    @property
    def key(self) -> tuple[str, ...]:
        """What it is the last execution of."""
        return self[:4]


class Executable(NamedTuple):
    """One case on one device, as it is now: what a record should have an execution of."""

    device: str
    rule: str
    case: str
    digest: str


def loads(text: str) -> list[Execution]:
    """Executions from their text; raises `ValueError` for any other text."""
    try:
        return [Execution(*row) for row in json.loads(text)["executions"]]
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a record of executions: {error}") from error


def dumps(executions: Iterable[Execution]) -> str:
    """Executions as text: a line each, in order, so that changes can be read."""
    rows = ",\n".join(json.dumps(execution, ensure_ascii=False) for execution in sorted(executions))
    return f'{{"executions": [\n{rows}\n]}}\n'
