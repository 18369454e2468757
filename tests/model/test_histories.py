"""Histories: which tensors are proven to have none."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.model import FileModel
from torchfix_codemods.source import Source

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\nnet = nn.Linear(2, 2)\nx = torch.zeros(2, 2)\n"


def tracked(code: str) -> bool | None:
    file = FileModel(Source("code.py", (HEAD + code).encode()))
    asked = [call for call in file.index.all(ast.Call) if isinstance(call.func, ast.Name) and call.func.id == "ask"]
    return file.gradients.tracked(asked[-1].args[0])


@pytest.mark.parametrize(
    "code",
    [
        "ask(x)",
        "x[0] = 1\nask(x)",
        "x[0] = torch.ones(2)\nx[1].copy_(x[0])\nask(x)",
        "x.uniform_(-bound, bound)\nask(x)",
        "x.data[0] = net(x)[0]\nask(x)",
        "torch.add(torch.ones(2), 1, out=x)\nask(x)",
        "y = net(x)\ny[0] = x[0]\nask(x)",
        "for i, (x, y) in enumerate(DataLoader(data)):\n    ask(x.cuda())",
        "for batch in DataLoader(data):\n    ask(batch[0])",
        "T = torch.cuda.FloatTensor if gpu else torch.FloatTensor\nask(T(2).fill_(1.0))",
        "ask(torch.cuda.LongTensor(2))",
    ],
)
def test_without(code):
    assert tracked(code) is False


@pytest.mark.parametrize(
    "code",
    [
        "ask(net(x))",
        "x[0] = net(x)[0]\nask(x)",
        "x[0][1] += net(x)[0, 1]\nask(x * 2)",
        "x[0].copy_(net.weight[0])\nask(x)",
        "x.add_(other)\nask(x)",
        "torch.add(net.weight, 1, out=x)\nask(x)",
        "x[0], y = net(x)\nask(x)",
        "for x in loader:\n    ask(x)",
        "T = Tensor\nask(T(2))",
    ],
)
def test_perhaps(code):
    assert tracked(code) is not False
