"""Contracts: what keeps and what breaks a promise."""

from __future__ import annotations

import os
import time

import pytest

from torchfix_codemods.verify.contract import Side, equal, judge, read_contract
from torchfix_codemods.verify.specifier import allows


def breaches(promise, before, after, name="x"):
    sides = [Side({} if value is None else {name: value}) for value in (before, after)]
    return [verdict.breach for verdict in judge(read_contract({"promises": {"x": promise}}), *sides) if verdict.breach]


@pytest.mark.parametrize(
    ("promise", "before", "after"),
    [
        ("same", 1.5, 1.5),
        ("same", [1, [2, "a"]], [1, [2, "a"]]),
        ("same", float("nan"), float("nan")),
        ("less", 10, 3),
        ("more", 3, 10),
        ({"close": 1e-6}, 1.0, 1.0 + 1e-9),
        ({"before": True, "after": False}, True, False),
        ({"after": 3}, None, 3),
        ({"before": {"one_of": ["A", "B"]}, "after": "C"}, "B", "C"),
        ({"relation": "less", "after": 0}, 8, 0),
        ({"relation": "same", "after": "nothing"}, "nothing", "nothing"),
    ],
)
def test_kept(promise, before, after):
    assert breaches(promise, before, after) == []


@pytest.mark.parametrize(
    ("promise", "before", "after", "says"),
    [
        ("same", 1.5, 1.6, "changed"),
        ("same", 1, True, "changed"),
        ("same", [1], [1, 2], "changed"),
        ("less", 3, 3, "is not less"),
        ("less", "a", 3, "is not less"),
        ("more", 3, 3, "is not more"),
        ({"close": 1e-6}, 1.0, 1.1, "changed"),
        ({"before": True, "after": False}, False, False, "before is False"),
        ({"before": True, "after": False}, True, True, "after is True"),
        ({"after": 3}, 3, 3, "the old one gives it too"),
        ({"before": {"one_of": ["A", "B"]}, "after": "C"}, "D", "C", "before is 'D'"),
        ({"before": {"one_of": ["A", "B"]}, "after": "B"}, "B", "B", "promised to change, but did not"),
        ({"after": 3}, None, 4, "after is 4"),
        ({"relation": "less", "after": 0}, 8, 1, "after is 1"),
        ("same", None, None, "never observed"),
        ({"before": 1, "after": 1}, 1, 1, "promised to change, but did not"),
    ],
)
def test_broken(promise, before, after, says):
    (breach,) = breaches(promise, before, after)
    assert says in breach


def test_what_nobody_promised_is_a_breach():
    assert breaches("same", 1, 1, name="y") == ["promised, but never observed", "observed, but nothing is promised about it"]


def test_a_side_that_fails_is_a_breach():
    verdicts = judge(read_contract({"promises": {"x": "same"}}), Side({"x": 1}), Side(failure="took too long"))
    assert [(v.observation, v.breach) for v in verdicts] == [("after side", "took too long")]


@pytest.mark.parametrize(
    "data",
    [
        {"promises": {"x": "equal"}},
        {"promises": {"x": {"befor": 1}}},
        {"promises": {}, "seeds": 1},
        {"promises": {"x": {"before": {"one_of": "A"}}}},
    ],
)
def test_contracts_with_mistakes(data):
    with pytest.raises(ValueError, match=r"promise|unknown|one_of"):
        read_contract(data)


def test_a_device_may_promise_something_else():
    promises = {"x": {"before": 1, "after": 2}, "memory": {"relation": "less", "device": "cuda"}, "y": "same"}
    contract = read_contract({"promises": promises, "cuda": {"x": "same"}})
    assert {name: promise.text for name, promise in contract.on("cpu").promises.items()} == {"x": "before 1, after 2", "y": "same"}
    assert {name: promise.text for name, promise in contract.on("cuda").promises.items()} == {"x": "same", "memory": "less", "y": "same"}


@pytest.mark.parametrize(
    ("specifier", "version", "allowed"),
    [
        ("", "1.0", True),
        (">=2.6", "2.6.0+cu124", True),
        (">=2.6", "2.5.1", False),
        (">=2.6", "2.10.0", True),
        (">=2.6,<2.10", "2.10.0", False),
        (">=2.6", "2.7.0.dev20250101+cpu", True),
    ],
)
def test_versions_of_torch(specifier, version, allowed):
    assert allows(specifier, version) == allowed


def test_a_version_that_is_no_specifier_is_a_mistake():
    with pytest.raises(ValueError, match=r'torch is a version specifier such as ">=2.6"'):
        read_contract({"promises": {"x": "same"}, "torch": "2.6"})


def test_equal_is_exact_without_a_tolerance():
    assert equal(0.1 + 0.2, 0.3, 1e-9)
    assert not equal(0.1 + 0.2, 0.3)
    assert not equal("1", 1)


def test_a_child_that_hangs_dies_or_raises_is_contained():
    from torchfix_codemods.verify.child import in_child

    assert in_child(lambda: {"x": 1}, 30).observations == {"x": 1}
    assert "more than 0.2 seconds" in in_child(lambda: time.sleep(60) or {}, 0.2).failure
    assert "status -9" in in_child(lambda: os.kill(os.getpid(), 9) or {}, 30).failure
    assert "ZeroDivisionError" in in_child(lambda: {"x": 1 / 0}, 30).failure
    here = os.getcwd()
    assert in_child(lambda: {"elsewhere": os.getcwd() != here}, 30).observations == {"elsewhere": True}
