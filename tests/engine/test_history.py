"""A place in a changed text is found in the original."""

from __future__ import annotations

import itertools

import pytest

from torchfix_codemods.engine import Group, rewrite
from torchfix_codemods.history import History
from torchfix_codemods.rule import Safety
from torchfix_codemods.source import Source
from torchfix_codemods.transforms import CHAIN


def original(texts, mark="§"):
    """Where the mark of the last text was in the first; the mark is no part of the text."""
    *others, last = [text.encode() for text in texts]
    history = History()
    offset = last.index(mark.encode())
    plain = [*others, last.replace(mark.encode(), b"")]
    for before, after in itertools.pairwise(plain):
        history.add(before, after)
    return texts[0].encode()[history.original(offset) :].decode()


@pytest.mark.parametrize(
    ("texts", "rest"),
    [
        (["a\nb\n", "a\n§b\n"], "b\n"),
        (["a\nb = f(x)\nc\n", "new\na\nb = f(x, y=1)\n§c\n"], "c\n"),
        (["a\nb = f(x)\nc\n", "a\nb = §f(x, y=1)\nc\n"], "f(x)\nc\n"),
        (["y = g(x).f(x)\n", "y = g(x, k=1).§f(x)\n"], "f(x)\n"),
        (["a\nb\nc\n", "with w:\n    a\n    §b\nc\n"], "b\nc\n"),
        (["def f():\n  a\n", "def f():\n        §a\n"], "a\n"),
        (["a\nc\n", "a\n§b\nc\n"], "c\n"),
        (["x = y.data[0] + z\n", "x = y.item() + §z\n"], "z\n"),
        (["a\nb\n", "a\nn\nb\n", "n1\na\nn\n§b\n"], "b\n"),
        (["a\r\nb\r\n", "n\r\na\r\n§b\r\n"], "b\r\n"),
        (["ä = 1\nö = f(ü)\n", "ä = 1\nö = f(k, §ü)\n"], "ü)\n"),
        (["a\n", "a\nb§\n"], ""),
        (["", "§a\n"], ""),
    ],
)
def test_places(texts, rest):
    assert original(texts) == rest


def test_a_large_region_is_not_compared_token_by_token():
    old = "".join(f"x{i} = f({i})\n" for i in range(3000))
    new = "".join(f"y{i} = g({i}, {i})\n" for i in range(3000)) + "§z\n"
    assert original([old, new]) == old


LOADS = (
    "import torch\n\nmodel = torch.nn.Linear(2, 1)\nmodel.load_state_dict(torch.load('a.pt'))\nmodel.load_state_dict(torch.load('b.pt'))\n"
)


def groups(text, **options):
    result = rewrite(Source("a.py", text.encode()), CHAIN, Safety.UNSAFE, **options)
    return {applied.group for applied in result.applied}, result.data.decode()


def test_fixes_are_known_by_the_same_in_all_passes_and_whatever_else_is_fixed():
    known, data = groups(LOADS)
    places = {LOADS.index("torch.load('a.pt')"), LOADS.index("torch.load('b.pt')")}
    rules = {"torch-load-map-location", "torch-load-weights-only"}
    assert known == {Group(rule, place) for rule in rules for place in places}
    assert data.count("map_location") == data.count("weights_only") == 2
    for allowed in known:
        alone, text = groups(LOADS, allows=lambda group, allowed=allowed: group == allowed)
        assert alone == {allowed}
        assert text.count("map_location") + text.count("weights_only") == 1
        others, text = groups(LOADS, allows=lambda group, allowed=allowed: group != allowed)
        assert others == known - {allowed}


def test_what_is_not_allowed_is_left():
    known, data = groups(LOADS, allows=lambda _: False)
    assert (known, data) == (set(), LOADS)
