"""Names: aliases, shadowing, and what is ambiguous."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.model import FileModel
from torchfix_codemods.source import Source


def model(code: str) -> FileModel:
    return FileModel(Source("code.py", code.encode()))


def last_call(file: FileModel) -> ast.Call:
    return file.index.all(ast.Call)[-1]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import torch\ntorch.load(p)", "torch.load"),
        ("import torch as th\nth.load(p)", "torch.load"),
        ("from torch import load as read\nread(p)", "torch.load"),
        ("import torch.nn.functional as F\nF.relu(x)", "torch.nn.functional.relu"),
        ("from torch.nn.modules.linear import Linear\nLinear(1, 2)", "torch.nn.Linear"),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\nDDP(m)", "torch.nn.DistributedDataParallel"),
        ("def f():\n    import torch\n    torch.load(p)", "torch.load"),
        ("import torch\ndef f():\n    return [torch.load(p) for p in ps]", "torch.load"),
        ("import torch\nclass A:\n    torch = 1\n    def f(self):\n        torch.load(p)", "torch.load"),
        ("try:\n    import torch\nexcept ImportError:\n    pass\ntorch.load(p)", "torch.load"),
        ("from . import torch\ntorch.load(p)", ".torch.load"),
        ("len(x)", "builtins.len"),
    ],
)
def test_qualified(code, name):
    file = model(code)
    assert file.qualified(last_call(file).func) == name


@pytest.mark.parametrize(
    "code",
    [
        "torch.load(p)",
        "import torch\ntorch = fake\ntorch.load(p)",
        "import torch\ndef f(torch):\n    torch.load(p)",
        "import torch\ndef f():\n    for torch in x:\n        torch.load(p)",
        "import torch\n[torch.load(p) for torch in x]",
        "import torch\nlambda torch: torch.load(p)",
        "import torch\nclass torch: pass\ntorch.load(p)",
        "try:\n    from torch.amp import autocast\nexcept ImportError:\n    from apex import autocast\nautocast(p)",
        "from torch import *\nload(p)",
        "import torch\nwith open(p) as torch:\n    torch.load(p)",
        "import torch\ndef f():\n    global torch\n    torch = 1\ntorch.load(p)",
        "len = 1\nlen(x)",
    ],
)
def test_shadowed_or_ambiguous(code):
    file = model(code)
    assert file.qualified(last_call(file).func) is None


def test_undefined_names():
    code = "import os\ndef f(a, *b, c=os, **d):\n    e = [g for g in a]\n    return e, h, b, c, d, print, __file__\nclass K:\n    x = y\n"
    assert model(code).names.undefined() == {"h", "y"}


def test_star_import_leaves_nothing_undefined():
    assert model("from x import *\nprint(y)").names.undefined() == set()


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("def f(x):\n    x = 1\n    return x", [2]),
        ("def f(x):\n    if c:\n        x = 1\n    return x", [1, 3]),
        ("def f(x):\n    if c:\n        x = 1\n    else:\n        x = 2\n    return x", [3, 5]),
        ("def f(x):\n    if c:\n        x = 1\n        return 0\n    return x", [1]),
        ("def f(x):\n    for i in y:\n        x = i\n    return x", [1, 3]),
        ("def f(x):\n    for x in y:\n        return x", [2]),
        ("def f(x):\n    while c:\n        print(x)\n        x = 2", [1, 4]),
        ("def f(x):\n    with o() as x:\n        return x", [2]),
        ("def f(x):\n    try:\n        x = 1\n    except E:\n        return x", [1, 3]),
        ("def f(x):\n    x = 1\n    x += 2\n    return x", [3]),
        ("def f(x):\n    (x := 1) if c else 0\n    return x", [1, 2]),
    ],
)
def test_reaching_definitions(code, lines):
    file = model(code)
    uses = [n for n in file.index.all(ast.Name) if n.id == "x" and isinstance(n.ctx, ast.Load)]
    assert sorted(binding.lineno for binding in file.flow.reaching(uses[-1])) == lines
