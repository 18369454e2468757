"""What a rewrite promises about behaviour, and whether two observed sides keep it. Knows nothing of torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .specifier import torch_specifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NOTHING = object()
RELATIONS = ("same", "less", "more")
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True)
class OneOf:
    """A value that is one of these: builds and versions of torch differ in how they say the same."""

    values: tuple[object, ...]

    def __repr__(self) -> str:
        return f"one of {', '.join(map(repr, self.values))}"


@dataclass(frozen=True, slots=True)
class Promise:
    """What must hold of one observation."""

    relation: str = ""
    """`same`, `less` (after than before), `more`, or nothing."""
    close: float | None = None
    """Equal but for this absolute and relative tolerance."""
    before: object = _NOTHING
    after: object = _NOTHING
    device: str = ""
    """The only device on which it is observed; every one when empty."""

    @property
    def text(self) -> str:
        """The promise as people read it."""
        parts = [self.relation] if self.relation else []
        parts += [f"close to {self.close:g}"] if self.close is not None else []
        parts += [f"before {self.before!r}"] if self.before is not _NOTHING else []
        parts += [f"after {self.after!r}"] if self.after is not _NOTHING else []
        return ", ".join(parts)

    @property
    def keeps_value(self) -> bool:
        """Whether before and after are promised to be equal."""
        return self.relation == "same" or self.close is not None

    @property
    def is_of_new_code(self) -> bool:
        """Whether only the new code can be observed, since the old one raises."""
        return self.after is not _NOTHING and self.before is _NOTHING and not self.relation and self.close is None


@dataclass(frozen=True, slots=True)
class Contract:
    """The promises of one case."""

    promises: Mapping[str, Promise]
    devices: tuple[str, ...] = ("cpu",)
    seed: int = 0
    unsafe: bool = False
    """Whether the fix of this case is one of those that need `--unsafe-fixes`."""
    torch: str = ""
    """The versions of torch on which it holds, as `>=2.6`; every one when empty."""
    instead: Mapping[str, Mapping[str, Promise]] = field(default_factory=dict)
    """For a device: the promises that hold there in place of those of the same name."""

    def on(self, device: str) -> Contract:
        """What is promised on one device."""
        promises = {**self.promises, **self.instead.get(device, {})}
        return replace(self, promises={name: promise for name, promise in promises.items() if promise.device in {"", device}}, instead={})


@dataclass(frozen=True, slots=True)
class Side:
    """What was seen of one side: its observations, or why there are none."""

    observations: Mapping[str, object] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one observation."""

    observation: str
    before: object
    after: object
    promise: str
    breach: str = ""
    """What is wrong; empty when the promise is kept."""


def read_contract(data: Mapping[str, Any]) -> Contract:
    """A contract from its TOML; raises `ValueError` for what it doesn't know."""
    unknown = set(data) - {"devices", "seed", "unsafe", "torch", "promises", *DEVICES}
    if unknown:
        raise ValueError(f"unknown keys in a contract: {', '.join(sorted(unknown))}")
    if not data.get("promises"):
        raise ValueError("a contract needs a table [promises] with at least one promise")
    devices = tuple(data.get("devices", ("cpu",)))
    if not devices or set(devices) - set(DEVICES):
        raise ValueError(f"devices is a list of {', '.join(DEVICES)}")
    return Contract(
        _promises(data["promises"]),
        devices,
        data.get("seed", 0),
        data.get("unsafe", False),
        torch_specifier(data.get("torch", "")),
        {device: _promises(data[device]) for device in DEVICES if device in data},
    )


def _promises(table: Mapping[str, object]) -> dict[str, Promise]:
    return {name: _promise(name, value) for name, value in table.items()}


def _promise(name: str, value: object) -> Promise:
    table = {"relation": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not table or set(table) - {"relation", "close", "before", "after", "device"}:
        raise ValueError(f"{name}: a promise has relation, close, before, after and device, and nothing else")
    values = {key: _value(name, table[key]) for key in ("before", "after") if key in table}
    promise = Promise(**{**table, **values})
    if promise.relation not in {"", *RELATIONS}:
        raise ValueError(f"{name}: a relation promised is one of {', '.join(RELATIONS)}, not {promise.relation!r}")
    if promise.device not in {"", *DEVICES}:
        raise ValueError(f"{name}: the device of a promise is one of {', '.join(DEVICES)}, not {promise.device!r}")
    return promise


def _value(name: str, value: object) -> object:
    """A promised value; `{ one_of = […] }` leaves a choice."""
    if not isinstance(value, dict) or "one_of" not in value:
        return value
    if set(value) != {"one_of"} or not isinstance(value["one_of"], list):
        raise ValueError(f'{name}: a choice is {{ one_of = ["this", "that"] }}, and nothing else')
    return OneOf(tuple(value["one_of"]))


def judge(contract: Contract, before: Side, after: Side) -> list[Verdict]:
    """One verdict for each observation that was promised or seen, and one for each side that gave none."""
    failures = [
        Verdict(f"{name} side", "", "", "runs", side.failure) for name, side in (("before", before), ("after", after)) if side.failure
    ]
    if failures:
        return failures
    names = dict.fromkeys([*contract.promises, *before.observations, *after.observations])
    return [_verdict(name, contract.promises.get(name), before.observations, after.observations) for name in names]


def _verdict(name: str, promise: Promise | None, before: Mapping[str, object], after: Mapping[str, object]) -> Verdict:
    first, second = before.get(name, _NOTHING), after.get(name, _NOTHING)
    breaches = ["observed, but nothing is promised about it"] if promise is None else list(_breaches(promise, first, second))
    text = promise.text if promise else ""
    return Verdict(name, _shown(first), _shown(second), text, "; ".join(breaches))


def _shown(value: object) -> object:
    return "" if value is _NOTHING else value


def _breaches(promise: Promise, before: object, after: object) -> Iterator[str]:
    if before is _NOTHING and after is _NOTHING:
        yield "promised, but never observed"
        return
    for name, seen, promised in (("before", before, promise.before), ("after", after, promise.after)):
        allowed = promised.values if isinstance(promised, OneOf) else (promised,)
        if promised is not _NOTHING and not any(equal(seen, value) for value in allowed):
            yield f"{name} is {_shown(seen)!r}"
    if promise.before is not _NOTHING and promise.after is not _NOTHING and equal(before, after):
        yield "promised to change, but did not"
    if promise.is_of_new_code and before is not _NOTHING:
        yield "promised for the new code alone, but the old one gives it too"
    if promise.keeps_value and not equal(before, after, promise.close or 0.0):
        yield "changed"
    if promise.relation in {"less", "more"} and not _is_ordered(before, after, promise.relation):
        yield f"is not {promise.relation}"


def _is_ordered(before: object, after: object, relation: str) -> bool:
    if not isinstance(before, (int, float)) or not isinstance(after, (int, float)):
        return False
    return after < before if relation == "less" else after > before


def equal(first: object, second: object, tolerance: float = 0.0) -> bool:
    """Whether two plain values are equal, numbers within a tolerance; 1 and True are different, NaN equals itself."""
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(equal(a, b, tolerance) for a, b in zip(first, second, strict=True))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(equal(first[key], second[key], tolerance) for key in first)
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        both_nan = math.isnan(first) and math.isnan(second)
        return both_nan or first == second or (tolerance > 0 and math.isclose(first, second, rel_tol=tolerance, abs_tol=tolerance))
    return type(first) is type(second) and first == second
