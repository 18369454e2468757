"""Execute the cases of a rule, and note what is seen for its documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..measured import HOLDS, NOT_VERIFIED, Measured, Row
from .case import digest
from .interpreter import present
from .sides import execute, obstacle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .case import Case
    from .contract import Verdict

_LEAVES = 8
"""Values of a list that are shown one by one, when they are numbers."""
_WIDTH = 60
_LARGE = 1e6


class Breach(Exception):
    """A promise that does not hold: nothing of the rule may be noted."""


def measure(cases: Sequence[Case], old: Measured | None = None, again: bool = False) -> Measured:
    """The table of a rule; raises `Breach`.

    A case that is as it was when `old` was measured isn't executed, unless `again` is set, or a device is there that
    was missing then. On a missing device, what was measured of the same case elsewhere stays.
    """
    digests = {case.name: digest(case) for case in cases if case.contract}
    noted, broken = list[Row](), list[str]()
    for case in (case for case in cases if case.contract):
        known = old if old and old.digests.get(case.name) == digests[case.name] else Measured()
        try:
            noted += _case_rows(case, known, again)
        except Breach as breach:
            broken.append(str(breach))
    if broken:
        raise Breach("\n".join(broken))
    return counted(cases, digests, tuple(noted))


def counted(cases: Sequence[Case], digests: dict[str, str], rows: tuple[Row, ...]) -> Measured:
    """The table with the numbers of cases of each kind."""
    return Measured(
        rewrites=sum(case.is_rewrite for case in cases),
        reports=sum(bool(case.reports) for case in cases),
        refusals=sum(case.is_refusal for case in cases),
        by_hand=tuple(case.name for case in cases if case.reports and case.contract),
        digests=digests,
        rows=rows,
    )


def _case_rows(case: Case, old: Measured, again: bool) -> Iterator[Row]:
    assert case.contract is not None
    for device in case.contract.devices:
        known = old.of(case.name, device)
        if known and not again and all(row.verdict == HOLDS for row in known):
            yield from known
            continue
        if obstacle(case, device, present()):
            yield from known or _unverified(case, device)
        else:
            yield from rows(case, device, execute(case, device))


def rows(case: Case, device: str, verdicts: Sequence[Verdict]) -> list[Row]:
    """The verdicts of one execution as rows; raises `Breach` when one does not hold."""
    broken = [f"{case.rule}/{case.name} on {device}: {v.observation}: {v.breach}" for v in verdicts if v.breach]
    if broken:
        raise Breach("\n".join(broken))
    return [Row(case.name, device, v.observation, shown(v.before), shown(v.after), _cut(v.promise), HOLDS) for v in verdicts]


def _unverified(case: Case, device: str) -> list[Row]:
    assert case.contract is not None
    promises = case.contract.on(device).promises
    return [Row(case.name, device, name, "", "", _cut(promise.text), NOT_VERIFIED) for name, promise in promises.items()]


def shown(value: object) -> str:
    """A value in few words, with no more digits than other machines give too."""
    leaves = list(_leaves(value))
    if len(leaves) > _LEAVES and all(isinstance(leaf, (int, float)) and not isinstance(leaf, bool) for leaf in leaves):
        numbers = [leaf for leaf in leaves if isinstance(leaf, (int, float))]
        return f"{len(numbers)} numbers from {shown(min(numbers))} to {shown(max(numbers))}"
    return _cut(_text(value))


def _leaves(value: object) -> Iterator[object]:
    if not isinstance(value, (list, dict)):
        yield value
        return
    for item in value.values() if isinstance(value, dict) else value:
        yield from _leaves(item)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}" if value.is_integer() and abs(value) < _LARGE else f"{value:.4g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_text(item)}' for key, item in value.items())}}}"
    return str(value)


def _cut(text: str) -> str:
    line = text.rstrip("\n").replace("\n", "\\n")
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
