"""Leaves: which tensors are proven to require a gradient without a history."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.model import FileModel
from torchfix_codemods.source import Source

HEAD = "import torch\nfrom torch import nn\nfrom torch.autograd import Variable\n"
ONES = "w = torch.ones(2, requires_grad=True)\n"


def last_is_leaf(code: str) -> bool:
    file = FileModel(Source("code.py", (HEAD + code).encode()))
    marked = [call for call in file.index.all(ast.Call) if isinstance(call.func, ast.Name) and call.func.id == "ask"]
    return file.leaves.is_leaf(marked[-1].args[0])


@pytest.mark.parametrize(
    "code",
    [
        ONES + "ask(w)",
        ONES + "for i in range(3):\n    w -= w.grad\n    ask(w)",
        ONES + "w += 1\nw *= 2\nask(w)",
        ONES + "v = w\nask(v)",
        ONES + "for p in [w]:\n    ask(p)",
        ONES + "ps = (w, w)\ndef f(params):\n    for p in params:\n        ask(p)\nf(ps)",
        "w = torch.ones(2).requires_grad_()\nask(w)",
        ONES + "x = (w * 2).detach().requires_grad_(True)\nask(x)",
        "w = torch.ones(2)\nw.requires_grad = True\nif x:\n    ask(w)",
        "w = Variable(torch.ones(2), requires_grad=True)\nask(w)",
        "ask(nn.Linear(2, 2).weight)",
        "for p in nn.Linear(2, 2).parameters():\n    ask(p)",
        "class N(nn.Module):\n    def __init__(self):\n        self.w = nn.Parameter(x)\n        self.w *= 2\n        ask(self.w)",
        "def f(w: nn.Parameter):\n    ask(w)",
    ],
)
def test_proven(code):
    assert last_is_leaf(code)


@pytest.mark.parametrize(
    "code",
    [
        "w = torch.ones(2)\nask(w)",
        ONES + "w = w * 2\nask(w)",
        ONES + "w = w.cuda()\nask(w)",
        ONES + "if x:\n    w = w * 2\nask(w)",
        ONES + "w.requires_grad_(False)\nask(w)",
        ONES + "for p in [w, w * 2]:\n    ask(p)",
        ONES + "def f(w):\n    ask(w)\nf(w)\nf(w * 2)",
        "w = torch.ones(2)\nif x:\n    w.requires_grad_()\nask(w)",
        "w = torch.ones(2)\nask(w)\nw.requires_grad_()",
        "m = nn.Linear(2, 2)\nfor p in m.parameters():\n    p.requires_grad = False\n    ask(p)",
        "class N(nn.Module):\n    def __init__(self):\n        self.w = nn.Parameter(x, requires_grad=False)\n        ask(self.w)",
        "class N(nn.Module):\n    def __init__(self):\n        self.w = nn.Parameter(x)\n        self.w = self.w * 2\n        ask(self.w)",
        "def f(w):\n    ask(w)",
        "def f(w):\n    global v\n    w = v = w\n    for w in w:\n        ask(w)",
    ],
)
def test_not_proven(code):
    assert not last_is_leaf(code)


@pytest.mark.parametrize(("code", "expected"), [(ONES, True), ("w = torch.ones(2)\n", False), ("", False)])
def test_was_leaf(code, expected):
    file = FileModel(Source("code.py", (HEAD + code + "while x:\n    w = w - w.grad\n").encode()))
    target = file.index.all(ast.Assign)[-1].targets[0]
    assert isinstance(target, ast.Name)
    assert file.leaves.was_leaf(target) is expected
