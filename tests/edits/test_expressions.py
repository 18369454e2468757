"""Edits of expressions, on the layouts that people write: the exact text that comes out."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.edits import (
    AddKeyword,
    ChangeTail,
    RemoveArgument,
    ReplaceExpression,
)
from torchfix_codemods.source import Span

from .code import Code

ADD_KEYWORD = {
    "f(a)\n": "f(a, k=1)\n",
    "f()\n": "f(k=1)\n",
    "f(a, b=2)  # why\n": "f(a, b=2, k=1)  # why\n",
    "f(*a)\n": "f(*a, k=1)\n",
    "f(**m)\n": "f(k=1, **m)\n",
    "f(a, **m)\n": "f(a, k=1, **m)\n",
    "f(a,)\n": "f(a, k=1,)\n",
    "f(\n    a,\n    b,\n)\n": "f(\n    a,\n    b,\n    k=1,\n)\n",
    "f(\n    a,\n    b\n)\n": "f(\n    a,\n    b,\n    k=1\n)\n",
    "f(\n    a,  # first\n    b,  # second\n)\n": "f(\n    a,  # first\n    b,  # second\n    k=1,\n)\n",
    "f(x for x in y)\n": "f((x for x in y), k=1)\n",
    "if c: f(a)\n": "if c: f(a, k=1)\n",
    "f(a\n  )\n": "f(a, k=1\n  )\n",
    "f(\n    a\n)\n": "f(\n    a,\n    k=1\n)\n",
    "f(\n    a,  # why\n)\n": "f(\n    a,  # why\n    k=1,\n)\n",
    "f(\n    a  # why\n)\n": "f(\n    a,  # why\n    k=1\n)\n",
    "f(\n    a,  # first\n    b,\n)\n": "f(\n    a,  # first\n    b,\n    k=1,\n)\n",
    "f(\n    a,  # first\n    **m\n)\n": "f(\n    a,  # first\n    k=1,\n    **m\n)\n",
    "f(a,\n  # above\n  b\n  # below\n)\n": "f(a,\n  # above\n  b,\n  # below\n  k=1\n)\n",
    "f(\r\n\ta,\r\n)\r\n": "f(\r\n\ta,\r\n\tk=1,\r\n)\r\n",
    "def g():\n\treturn [\n\t\tf(a),\n\t]\n": "def g():\n\treturn [\n\t\tf(a, k=1),\n\t]\n",
}


@pytest.mark.parametrize("before", ADD_KEYWORD)
def test_add_keyword(before):
    code = Code(before)
    call = next(node for node in ast.walk(code.tree) if isinstance(node, ast.Call) and node.func.id == "f")
    assert code.edited(AddKeyword(code.source.span(call), "k", "1")) == ADD_KEYWORD[before]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f('x')\n", "f('x', k='cpu')\n"),
        ('f("x")\n', 'f("x", k="cpu")\n'),
        ("f(x)\n", 'f(x, k="cpu")\n'),
        ("print(f'{f(x)}')\n", "print(f'{f(x, k=\"cpu\")}')\n"),
        ('print(f"{f(x)}")\n', "print(f\"{f(x, k='cpu')}\")\n"),
        ("f('x', \"y\")\n", 'f(\'x\', "y", k="cpu")\n'),
    ],
)
def test_added_strings_take_the_quotes_that_fit(before, after):
    code = Code(before)
    call = next(node for node in ast.walk(code.tree) if isinstance(node, ast.Call) and node.func.id == "f")
    assert code.edited(AddKeyword(code.source.span(call), "k", '"cpu"')) == after


@pytest.mark.parametrize(
    ("value", "after"),
    [
        ('d("cpu")', "print(f\"{f('x', k=d('cpu'))}\")\n"),
        ("b'cpu'", "print(f\"{f('x', k=b'cpu')}\")\n"),
    ],
)
def test_strings_inside_a_new_value_keep_prefix_and_change_quotes(value, after):
    code = Code("print(f\"{f('x')}\")\n")
    assert code.edited(AddKeyword(code["f('x')"], "k", value)) == after


def test_a_string_that_holds_the_preferred_quote_keeps_its_own():
    code = Code("f('x')\n")
    assert code.edited(AddKeyword(code["f('x')"], "k", '"it\'s"')) == "f('x', k=\"it's\")\n"


CHANGE_TAIL = [
    ("y = x.data\n", "x.data", "x", ("detach",), "y = x.detach()\n"),
    ("y = x.data\n", "x.data", "x", (), "y = x\n"),
    ("y = loss.data[0]\n", "loss.data[0]", "loss", ("item",), "y = loss.item()\n"),
    ("y = loss[0]\n", "loss[0]", "loss", ("item",), "y = loss.item()\n"),
    ("y = (a + b)[0]\n", "(a + b)[0]", "a + b", ("item",), "y = (a + b).item()\n"),
    ("t += loss\n", "loss", "loss", ("detach",), "t += loss.detach()\n"),
    ("f(a + b)\n", "a + b", "a + b", ("detach", "cpu"), "f((a + b).detach().cpu())\n"),
    ("f(-a)\n", "-a", "-a", ("detach",), "f((-a).detach())\n"),
    ("f(x\n  # why\n  .data)\n", "x\n  # why\n  .data", "x", ("detach",), "f(x\n  # why\n  .detach())\n"),
    ("h(\n    x.norm()  # frobenius\n    .data[0]\n)\n", "x.norm()  # frobenius\n    .data[0]", "x.norm()", ("item",),
     "h(\n    x.norm()  # frobenius\n    .item()\n)\n"),
    ('p(f"{loss.data[0]:.3f}")\n', "loss.data[0]", "loss", ("item",), 'p(f"{loss.item():.3f}")\n'),
    ("é = 'ü'; y = x.data\n", "x.data", "x", ("detach",), "é = 'ü'; y = x.detach()\n"),
    ("if a:\n    pass\nelif x.data:\n    pass\n", "x.data", "x", ("detach",), "if a:\n    pass\nelif x.detach():\n    pass\n"),
    ("try:\n    pass\nexcept x.data:\n    pass\n", "x.data", "x", ("detach",), "try:\n    pass\nexcept x.detach():\n    pass\n"),
    ("y = (x.data)\n", "x.data", "x", (), "y = (x)\n"),
    ("f((x := 3))\n", "x := 3", "x := 3", ("detach",), "f((x := 3).detach())\n"),
    ("y = 1\n", "1", "1", ("detach",), "y = (1).detach()\n"),
    ("y = (a, b)\n", "(a, b)", "(a, b)", ("index",), "y = (a, b).index()\n"),
    ("y = a if b else c\n", "a if b else c", "a if b else c", ("cpu",), "y = (a if b else c).cpu()\n"),
    ("async def f():\n    return await x\n", "await x", "await x", ("cpu",), "async def f():\n    return (await x).cpu()\n"),
    ("\x0cy = x.data\n", "x.data", "x", ("detach",), "\x0cy = x.detach()\n"),
    ("match x:\n    case 1: y = x.data\n", "x.data", "x", ("cpu",), "match x:\n    case 1: y = x.cpu()\n"),
    ("y = x.data \\\n    + 1\n", "x.data", "x", ("detach",), "y = x.detach() \\\n    + 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "target", "keep", "calls", "after"), CHANGE_TAIL)
def test_change_tail(before, target, keep, calls, after):
    code = Code(before)
    start = code.source.data.index(target.encode())
    outer = Span(start, start + len(target.encode()))
    inner = outer.start + target.index(keep)
    edit = ChangeTail(outer, Span(inner, inner + len(keep.encode())), calls)
    assert code.edited(edit) == after


def test_replace_expression_drops_parentheses_that_are_not_needed():
    code = Code("f(m=(lambda s, l: s))\n")
    assert code.edited(ReplaceExpression(code["lambda s, l: s"], '"cpu"')) == 'f(m="cpu")\n'


REPLACED = [
    ("f(g)\n", "a if b else c", "f(a if b else c)\n"),
    ("f(g)\n", "1, 2", "f((1, 2))\n"),
    ("y = g.b\n", "a if b else c", "y = (a if b else c).b\n"),
    ("y = g + 1\n", "a or b", "y = (a or b) + 1\n"),
    ("y = g + 1\n", "2", "y = 2 + 1\n"),
    ("y = g.real\n", "2", "y = (2).real\n"),
    ("y = [i for i in g]\n", "a if b else c", "y = [i for i in (a if b else c)]\n"),
    ("y = f'{g}'\n", "{1: 2}", "y = f'{({1: 2})}'\n"),
    ("y = f'{g}'\n", "'x'", "y = f'{\"x\"}'\n"),
    ("def h():\n    return(g)\n", "x", "def h():\n    return(x)\n"),
    ("f(m=(g))\n", "a or b", "f(m=(a or b))\n"),
    ("f(m=(g))\n", "x", "f(m=x)\n"),
    ("f(m=(  # why\n    g))\n", "x", "f(m=(  # why\n    x))\n"),
]


@pytest.mark.parametrize(("before", "new", "after"), REPLACED)
def test_replace_expression(before, new, after):
    code = Code(before)
    assert code.edited(ReplaceExpression(code["g"], new)) == after


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [
        ("f(a, b=1)\n", ["1"], "f(a)\n"),
        ("f(b=1)\n", ["1"], "f()\n"),
        ("f(b=1, c=2)\n", ["1"], "f(c=2)\n"),
        ("f(a, b=1, c=2)\n", ["1", "2"], "f(a)\n"),
        ("f(\n    a,\n    b=1,\n)\n", ["1"], "f(\n    a,\n)\n"),
        ("f(\n    a,\n    b=1)\n", ["1"], "f(\n    a)\n"),
        ("f(a, b=1, **kw)\n", ["1"], "f(a, **kw)\n"),
        ("f(a, 7, c)\n", ["7"], "f(a, c)\n"),
    ],
)
def test_remove_argument(before, values, after):
    code = Code(before)
    call = code.source.span(code.tree.body[0].value)
    assert code.edited(*(RemoveArgument(call, code[value]) for value in values)) == after


def test_remove_argument_keeps_comments():
    code = Code("f(\n    a,\n    b=1,  # important\n    c=2,\n)\n")
    assert "comment would be lost" in code.refusal(RemoveArgument(code.source.span(code.tree.body[0].value), code["1"]))


def test_remove_and_add_arguments():
    code = Code("f(a, volatile=True)\n")
    call = code.source.span(code.tree.body[0].value)
    assert code.edited(RemoveArgument(call, code["True"]), AddKeyword(call, "k", "v")) == "f(a, k=v)\n"
