"""Keep what an execution of contracts gave in a file, beside what other machines and other versions of torch gave."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

from ..measured import HOLDS, NOT_VERIFIED
from ..recorded import Execution, dumps, loads
from .case import digest
from .sides import NEEDS_TORCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from .case import Case
    from .command import Row
    from .interpreter import Interpreter


class RecordError(Exception):
    """A file that can't be kept up; the text names it and says what to do."""


def read(path: Path) -> list[Execution]:
    """What a file holds; nothing when it doesn't exist yet. Raises `RecordError`."""
    try:
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}")
        return loads(path.read_text(encoding="utf-8")) if path.exists() else []
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: can't be read as a record ({error}); name another file with --record") from error


def merged(known: Sequence[Execution], rows: Sequence[Row], cases: Sequence[Case], python: Interpreter) -> list[Execution]:
    """A record brought up to date with the rows of these cases, which are all of their rules.

    What was executed now takes the place of what it repeats. Cases that are gone leave the record.
    """
    rules, there = {case.rule for case in cases}, {(case.rule, case.name) for case in cases if case.contract}
    stay = [execution for execution in known if execution.rule not in rules or (execution.rule, execution.case) in there]
    return list({execution.key: execution for execution in (*stay, *_executions(rows, cases, python))}.values())


def write(path: Path, executions: Iterable[Execution]) -> None:
    """Replace a record whole, or not at all; raises `RecordError`."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(dumps(executions), encoding="utf-8")
        os.replace(new, path)
    except OSError as error:
        raise RecordError(f"{path}: the record can't be written ({error})") from error


def _executions(rows: Sequence[Row], cases: Sequence[Case], python: Interpreter) -> Iterator[Execution]:
    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    executed = [row for row in rows if row.device and row.verdict != NOT_VERIFIED]
    for case in cases:
        for device in case.contract.devices if case.contract else ():
            mine = [row.verdict for row in executed if (row.rule, row.case, row.device) == (case.rule, case.name, device)]
            if mine:
                judged = sum(not verdict.startswith(NEEDS_TORCH) for verdict in mine)
                verdict = next((verdict for verdict in mine if verdict != HOLDS), HOLDS)
                name, (version, torch) = python.device_name(device), (python.versions.python, python.versions.torch)
                yield Execution(device, torch, case.rule, case.name, name, version, today, judged, verdict, digest(case))
