"""Origins: the expressions that a value may come from, or none where one is out of sight."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.model import FileModel
from torchfix_codemods.source import Source


def origins_of_last(code: str) -> list[str]:
    file = FileModel(Source("code.py", code.encode()))
    marked = [call for call in file.index.all(ast.Call) if isinstance(call.func, ast.Name) and call.func.id == "ask"]
    return [ast.unparse(value) for value in file.origins.of(marked[-1].args[0])]


@pytest.mark.parametrize(
    ("code", "origins"),
    [
        ("ask(f())", ["f()"]),
        ("x = f()\ny = x\nask(y)", ["f()"]),
        ("x = f() if a else None\nask(x)", ["f()", "None"]),
        ("x = None\nif a:\n    x = f()\nask(x)", ["f()", "None"]),
        ("x = f()\nx = g()\nask(x)", ["g()"]),
        ("x, y = f(), g()\nask(y)", ["g()"]),
        ("ask((x := f()))", ["f()"]),
        ("class A:\n    def __init__(self):\n        self.x = f()\n    def m(self):\n        ask(self.x)", ["f()"]),
        ("d = {'a': f(), 'b': g()}\nask(d['b'])", ["g()"]),
        ("d = {'a': f(), 'b': g()}\nfor k in d:\n    ask(d[k])", ["f()", "g()"]),
        ("d = {k: f(k) for k in (1, 2)}\nask(d[1])", ["f(k)"]),
        ("d = [f(), g()]\nask(d[1])", ["g()"]),
        ("import torch.nn\nask(torch.nn.Linear)", ["torch.nn.Linear"]),
    ],
)
def test_origins(code, origins):
    assert origins_of_last(code) == origins


@pytest.mark.parametrize(
    "code",
    [
        "def h(x):\n    ask(x)",
        "for x in xs:\n    ask(x)",
        "x, y = f()\nask(x)",
        "x = f()\nif a:\n    x, _ = g()\nask(x)",
        "x = f()\nx += 1\nask(x)",
        "class A:\n    def __init__(self):\n        self.x = f()\n    def m(self):\n        ask(self.x)\na = A()\na.x = g()",
        "class A:\n    def __init__(self, x):\n        self.x = x\n    def m(self):\n        ask(self.x)",
        "d = {'a': f()}\nd['a'] = g()\nask(d['a'])",
        "def h(d):\n    ask(d['a'])",
        "ask(unknown)",
    ],
)
def test_out_of_sight(code):
    assert origins_of_last(code) == []
