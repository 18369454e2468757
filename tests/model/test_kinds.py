"""Kinds: what is proven, what is only likely, and what stays unknown."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.model import FileModel, Kind, Recording
from torchfix_codemods.source import Source

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
NET = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 2)\n        self.w = nn.Parameter(torch.ones(1))\n    def forward(self, x):\n        return self.fc(x)\n"


def fact_of_last(code: str):
    file = FileModel(Source("code.py", (HEAD + code).encode()))
    marked = [call for call in file.index.all(ast.Call) if isinstance(call.func, ast.Name) and call.func.id == "ask"]
    return file.fact(marked[-1].args[0])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ask(nn.Linear(1, 2))", Kind.MODULE),
        ("m = nn.Linear(1, 2).to('cuda').eval()\nask(m)", Kind.MODULE),
        (NET + "ask(Net())", Kind.MODULE),
        (NET + "net = Net()\nask(net(1))", Kind.TENSOR),
        (NET + "net = Net()\nask(net.w)", Kind.PARAMETER),
        (NET + "net = Net()\nask(net.fc.weight)", Kind.PARAMETER),
        (NET + "for p in Net().parameters():\n    ask(p)", Kind.PARAMETER),
        (NET + "for n, p in Net().named_parameters():\n    ask(p)", Kind.PARAMETER),
        (NET + "for p, q in zip(Net().parameters(), Net().parameters()):\n    ask(q)", Kind.PARAMETER),
        (NET + "for i, m in enumerate(Net().modules()):\n    ask(m)", Kind.MODULE),
        (NET + "opt = torch.optim.SGD(Net().parameters())\nask(opt)", Kind.OPTIMIZER),
        ("ask(F.mse_loss(a, b))", Kind.SCALAR_TENSOR),
        ("ask(F.mse_loss(a, b, reduction='none'))", Kind.TENSOR),
        ("crit = nn.CrossEntropyLoss()\nask(crit(a, b))", Kind.SCALAR_TENSOR),
        ("crit = nn.CrossEntropyLoss(reduction='none')\nask(crit(a, b))", Kind.TENSOR),
        ("x = torch.ones(2)\nask(x.sum())", Kind.SCALAR_TENSOR),
        ("x = torch.ones(2)\nask(x.sum(0))", Kind.TENSOR),
        ("x = torch.ones(2)\nask(x.max(1)[0])", Kind.TENSOR),
        ("x = torch.ones(2)\nv, i = x.max(1)\nask(i)", Kind.TENSOR),
        ("x = torch.ones(2)\nask(x.mean() * 2 + x.sum())", Kind.SCALAR_TENSOR),
        ("x = torch.ones(2)\nask('%f' % x)", Kind.TEXT),
        ("x = torch.ones(2)\nask(x.mean().item())", Kind.NUMBER),
        ("ask(y.item())", Kind.NUMBER),
        ("def f(m: nn.Module):\n    ask(m)", Kind.MODULE),
        ("def f(m):\n    m.eval()\n    ask(m)\n    m(1)", Kind.MODULE),
        ("def f(w: nn.Parameter):\n    ask(w)", Kind.PARAMETER),
        ("def f(m):\n    if isinstance(m, nn.Conv2d):\n        ask(m.weight)", Kind.PARAMETER),
        ("def f(m):\n    if not isinstance(m, nn.Conv2d):\n        return\n    ask(m)", Kind.MODULE),
        ("def build():\n    return nn.Linear(1, 2)\nask(build())", Kind.MODULE),
        ("m = a if c else nn.Linear(1, 2)\nm = nn.Linear(1, 2)\nask(m)", Kind.MODULE),
        ("def f(m):\n    m.train(phase == 'train')\n    ask(m)\n    m(1)", Kind.MODULE),
        (
            "class A:\n    def __init__(self, m):\n        self.m = m\n    def f(self):\n        self.m.eval()\n        self.m(1)\n        ask(self.m)",
            Kind.MODULE,
        ),
        ("def f(model, x):\n    out = model(x)\n    F.relu(out)\n    ask(out)", Kind.TENSOR),
        ("def f(loss):\n    loss.backward()\n    ask(loss)", Kind.TENSOR),
        ("total = 0\nfor x in y:\n    total += 1\nask(total)", Kind.NUMBER),
    ],
)
def test_proven(code, kind):
    fact = fact_of_last(code)
    assert fact is not None
    assert (fact.kind, fact.proven) == (kind, True)


@pytest.mark.parametrize(
    "code",
    [
        "ask(model)",
        "def f(x):\n    ask(x)",
        "m = a if c else nn.Linear(1, 2)\nask(m)",
        "m = nn.Linear(1, 2)\nm = other()\nask(m) if c else 0\nm = 3",
        "m = nn.LSTM(1, 2)\nask(m(x))",
        "df = frame()\ndef f(df):\n    df.eval('a + b')\n    ask(df)\n    df(1)",
        "def f(tokenizer, files):\n    tokenizer.train(files)\n    ask(tokenizer)\n    tokenizer(1)",
        "def f(out):\n    F.relu(out)\n    out = other()\n    ask(out)",
        "x = torch.max(a, b)\nask(x)",
        "crit = nn.CrossEntropyLoss(**options)\nask(crit(a, b)[0] if c else y)",
        "class Net(Base):\n    pass\nask(Net()(1))",
    ],
)
def test_unknown(code):
    fact = fact_of_last(code)
    assert fact is None or not fact.proven or fact.kind not in {Kind.SCALAR_TENSOR, Kind.MODULE, Kind.TENSOR}


def test_a_name_is_a_hint_and_no_proof():
    fact = fact_of_last("def f(model):\n    ask(model)")
    assert (fact.kind, fact.proven) == (Kind.MODULE, False)


@pytest.mark.parametrize(
    ("code", "mode"),
    [
        ("ask(1)", Recording.ON),
        ("with torch.no_grad():\n    ask(1)", Recording.OFF),
        ("with torch.set_grad_enabled(flag):\n    ask(1)", Recording.UNKNOWN),
        ("with torch.no_grad():\n    with torch.enable_grad():\n        ask(1)", Recording.ON),
        ("@torch.inference_mode()\ndef f():\n    ask(1)", Recording.OFF),
        ("def f():\n    ask(1)\nwith torch.no_grad():\n    f()", Recording.OFF),
        ("def f():\n    ask(1)\nwith torch.no_grad():\n    f()\nf()", Recording.ON),
        ("torch.no_grad()\nask(1)", Recording.ON),
        ("torch.set_grad_enabled(False)\nask(1)", Recording.OFF),
        ("with torch.no_grad():\n    def f():\n        ask(1)", Recording.ON),
    ],
)
def test_recording(code, mode):
    file = FileModel(Source("code.py", (HEAD + code).encode()))
    call = next(c for c in file.index.all(ast.Call) if isinstance(c.func, ast.Name) and c.func.id == "ask")
    assert file.gradients.recording(call) is mode


def test_circular_definitions_end():
    assert fact_of_last("def f(a, b):\n    for i in y:\n        a, b = b, a\n        a = g(b)\n        b = a[0]\n    ask(a)\n") is None


def test_methods_are_resolved_whatever_is_asked_first():
    code = "class A:\n    def f(self): ...\nA().f()\n"
    file = FileModel(Source("a.py", code.encode()))
    call = next(call for call in file.index.all(ast.Call) if isinstance(call.func, ast.Attribute))
    assert [function.name for function in file.functions.targets(call)] == ["f"]
