"""The search finds what is to blame, keeps the rest, and makes few runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchfix_codemods.blame.budget import Budget, Exhausted
from torchfix_codemods.blame.search import largest

ITEMS = st.integers(1, 40).flatmap(
    lambda size: st.lists(st.integers(0, 5), min_size=size, max_size=size).map(
        lambda rules: {rule: [i for i, other in enumerate(rules) if other == rule] for rule in sorted(set(rules))}
    )
)


class Command:
    """A test of sets, that counts its runs."""

    def __init__(self, judge, limit=10_000):
        self.budget, self._judge = Budget(limit), judge
        self.seen = []

    def __call__(self, items):
        self.budget.spend()
        self.seen.append(items)
        return self._judge(items)


def search(groups, judge, limit=10_000, **options):
    command = Command(judge, limit)
    return largest(groups, command, command.budget, **options), command


def every(groups):
    return {item for items in groups.values() for item in items}


@given(ITEMS, st.data())
def test_failures_of_single_items_are_found_exactly(groups, data):
    guilty = data.draw(st.sets(st.sampled_from(sorted(every(groups)))))
    result, command = search(groups, lambda items: not items & guilty)
    assert set(result.guilty) == guilty
    assert result.kept == every(groups) - guilty
    assert (result.untried, result.exhausted) == ((), False)
    assert len(command.seen) == len(set(command.seen)) == command.budget.spent


@given(st.integers(1, 300), st.data())
def test_few_runs(size, data):
    guilty = data.draw(st.sets(st.integers(0, size - 1), max_size=4))
    _, command = search({"rule": list(range(size))}, lambda items: not items & guilty)
    assert command.budget.spent <= 1 + len(guilty) * (2 * math.log2(size) + 5)


def test_one_guilty_of_a_thousand():
    groups = {rule: range(100 * rule, 100 * rule + 100) for rule in range(10)}
    result, command = search(groups, lambda items: 777 not in items)
    assert list(result.guilty) == [777]
    assert command.budget.spent <= 14


@pytest.mark.parametrize("guilty", [set(), set(range(20))])
def test_all_or_nothing(guilty):
    result, command = search({"rule": range(20)}, lambda items: not items & guilty)
    assert result.kept == set(range(20)) - guilty
    assert command.budget.spent <= 1 + 4 * len(guilty)


@given(ITEMS, st.data())
def test_pairs_that_fail_together_lose_one_and_no_more(groups, data):
    items = sorted(every(groups))
    pairs = data.draw(
        st.lists(st.tuples(st.sampled_from(items), st.sampled_from(items)).filter(lambda pair: pair[0] != pair[1]), max_size=5)
    )

    def judge(chosen):
        return not any(a in chosen and b in chosen for a, b in pairs)

    result, _ = search(groups, judge)
    assert judge(result.kept)
    assert len(result.kept) >= len(items) - len({frozenset(pair) for pair in pairs})
    assert not any(judge(result.kept | {item}) for item in set(items) - result.kept)


@given(ITEMS, st.data())
def test_whatever_the_command_does_the_kept_set_passed_and_no_single_item_can_be_added(groups, data):
    seed = data.draw(st.integers())

    def judge(items):
        return not items or hash((seed, tuple(sorted(items)))) % 3 > 0

    result, command = search(groups, judge)
    assert not result.kept or result.kept in command.seen
    assert judge(result.kept)
    assert set(result.guilty) == every(groups) - result.kept
    assert not any(judge(result.kept | {item}) for item in result.guilty)


def test_items_that_need_each_other_are_added_back_together():
    def judge(items):
        return 9 not in items and (1 in items) == (2 in items)

    result, _ = search({"a": [0, 1], "b": [2, 3], "c": [8, 9]}, judge)
    assert result.kept >= {0, 3, 8}
    assert judge(result.kept)


@pytest.mark.parametrize("hub", [0, 5, 9])
def test_one_that_fails_with_many_goes_and_they_stay(hub):
    result, _ = search({"a": range(5), "b": range(5, 10)}, lambda items: hub not in items or len(items & {1, 2, 6, 7}) == 0)
    assert result.kept == set(range(10)) - {hub}
    assert list(result.guilty) == [hub]


def test_sets_with_the_same_outcome_are_run_once():
    result, command = search({"a": [0, 1, 2, 3]}, lambda items: 2 not in items, outcome=lambda items: items & {2})
    assert (dict(result.guilty), command.budget.spent) == ({2: frozenset({0, 1, 2, 3})}, 1)


@given(ITEMS, st.data(), st.integers(0, 30))
def test_when_the_budget_is_exhausted_the_kept_set_still_passes(groups, data, limit):
    guilty = data.draw(st.sets(st.sampled_from(sorted(every(groups)))))
    result, command = search(groups, lambda items: not items & guilty, limit)
    assert command.budget.spent <= limit
    assert not result.kept & guilty
    assert set(result.guilty) <= guilty
    assert result.kept | set(result.guilty) | set(result.untried) == every(groups)
    assert result.exhausted or set(result.guilty) == guilty


def test_one_bad_rule_does_not_take_the_budget_of_the_others():
    bad = set(range(100)) | {150}
    result, _ = search({"bad": range(100), "good": range(100, 200)}, lambda items: not items & bad, 40)
    assert result.kept >= set(range(100, 200)) - {150}
    assert result.exhausted
    assert 150 in result.guilty


def test_a_base_is_kept_and_not_tried():
    result, command = search({"a": [3, 4]}, lambda items: {1, 2} <= items and 3 not in items, base=frozenset({1, 2}))
    assert (result.kept, dict(result.guilty)) == ({1, 2, 4}, {3: {1, 2, 3, 4}})
    assert frozenset({1, 2}) not in command.seen


def test_a_share_is_part_of_the_budget():
    budget = Budget(3)
    with budget.share(1):
        budget.spend()
        with pytest.raises(Exhausted):
            budget.spend()
    budget.spend()
    with budget.share(5):
        assert budget.left == 1
