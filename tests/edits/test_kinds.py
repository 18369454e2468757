"""Each kind of edit, on the layouts that people write: the exact text that comes out."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.edits import (
    AddDecorator,
    AddKeyword,
    ChangeTail,
    InsertAfter,
    InsertBefore,
    MoveBefore,
    NeedImport,
    ReplaceExpression,
    WrapInTry,
    WrapInWith,
)
from torchfix_codemods.edits.apply import apply_groups
from torchfix_codemods.source import Source, Span


class Code:
    """A text to edit, whose parts are addressed by their own text."""

    def __init__(self, text: str) -> None:
        self.source = Source("code.py", text.encode())
        self.tree = ast.parse(text)

    def __getitem__(self, part: str) -> Span:
        start = self.source.data.index(part.encode())
        assert self.source.data.count(part.encode()) == 1, part
        return Span(start, start + len(part.encode()))

    def edited(self, *edits) -> str:
        result = apply_groups(self.source, self.tree, [edits])
        assert result.refused == {}
        assert result.applied == (0,)
        return result.data.decode()

    def refusal(self, *edits) -> str:
        result = apply_groups(self.source, self.tree, [edits])
        assert result.data == self.source.data
        assert result.applied == ()
        return result.refused[0]


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
    ],
)
def test_added_strings_take_the_quotes_that_fit(before, after):
    code = Code(before)
    call = next(node for node in ast.walk(code.tree) if isinstance(node, ast.Call) and node.func.id == "f")
    assert code.edited(AddKeyword(code.source.span(call), "k", '"cpu"')) == after


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


DECORATED = {
    "def f():\n    pass\n": "@d()\ndef f():\n    pass\n",
    "class A:\n    # static\n    @staticmethod\n    def f():\n        pass\n": "class A:\n    # static\n    @staticmethod\n    @d()\n    def f():\n        pass\n",
    "# about f\ndef f(): return 1\n": "# about f\n@d()\ndef f(): return 1\n",
    "if x:\n  def f():\n    '''a\n  b'''\n": "if x:\n  @d()\n  def f():\n    '''a\n  b'''\n",
    "def f():\r\n\tpass\r\n": "@d()\r\ndef f():\r\n\tpass\r\n",
}


@pytest.mark.parametrize("before", DECORATED)
def test_add_decorator(before):
    code = Code(before)
    function = next(node for node in ast.walk(code.tree) if isinstance(node, ast.FunctionDef))
    assert code.edited(AddDecorator(code.source.span(function), "d()")) == DECORATED[before]


@pytest.mark.parametrize(
    ("before", "anchor", "after"),
    [
        ("for x in y:\n    # forward\n    f(x)\n", "f(x)", "for x in y:\n    new()\n    # forward\n    f(x)\n"),
        ("a()\n\nf(x)\n", "f(x)", "a()\n\nnew()\nf(x)\n"),
        ("if c: f(x)  # why\n", "f(x)", "if c:\n    new()\n    f(x)  # why\n"),
        ("def g():\n\t'''doc'''\n\tf(x)\n", "f(x)", "def g():\n\t'''doc'''\n\tnew()\n\tf(x)\n"),
        ("f(x)", "f(x)", "new()\nf(x)"),
    ],
)
def test_insert_before(before, anchor, after):
    code = Code(before)
    assert code.edited(InsertBefore(code[anchor], "new()")) == after


@pytest.mark.parametrize(
    ("before", "anchor", "after"),
    [
        ("a()  # first\nb()\n", "a()", "a()  # first\nnew(1)\nnew(2)\nb()\n"),
        ("if c:\n    a()\nb()\n", "a()", "if c:\n    a()\n    new(1)\n    new(2)\nb()\n"),
        ("a()", "a()", "a()\nnew(1)\nnew(2)"),
        ("for x in y:\n    a(x)\n", "for x in y:\n    a(x)", "for x in y:\n    a(x)\nnew(1)\nnew(2)\n"),
        ("if c:\r\n  a()\r\nb()\r\n", "a()", "if c:\r\n  a()\r\n  new(1)\r\n  new(2)\r\nb()\r\n"),
    ],
)
def test_insert_after(before, anchor, after):
    code = Code(before)
    assert code.edited(InsertAfter(code[anchor], "new(1)\nnew(2)")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x in y:\n    b()\n    z()  # reset\n    s()\n", "for x in y:\n    z()  # reset\n    b()\n    s()\n"),
        ("a(); b()\nz()\ns()\n", "z()\na(); b()\ns()\n"),
        ("# back\nb()\nc()\n# clear\nz()\ns()\n", "# clear\nz()\n# back\nb()\nc()\ns()\n"),
    ],
)
def test_move_before(before, after):
    code = Code(before)
    target = code["a()"] if "a()" in before else code["b()"]
    assert code.edited(MoveBefore(code["z()"], target)) == after


def test_move_to_another_block_is_refused():
    code = Code("if c:\n    b()\nz()\n")
    assert "different blocks" in code.refusal(MoveBefore(code["z()"], code["b()"]))


def test_wrap_in_with_keeps_comments_blank_lines_and_strings():
    code = Code('def f():\n    # init\n    a(1)\n\n    b("""x\ny""")  # b\n    c()\n')
    expected = 'def f():\n    # init\n    with w():\n        a(1)\n\n        b("""x\ny""")  # b\n    c()\n'
    assert code.edited(WrapInWith(code["a(1)"], code['b("""x\ny""")'], "w()")) == expected


def test_wrap_and_change_inside_one_group():
    code = Code("for p in ps: p.data.zero_()\n")
    edits = [
        ChangeTail(code["p.data"], Span(code["p.data"].start, code["p.data"].start + 1)),
        WrapInWith(code["p.data.zero_()"], code["p.data.zero_()"], "w()"),
    ]
    assert code.edited(*edits) == "for p in ps:\n    with w():\n        p.zero_()\n"


def test_wrap_takes_a_line_of_several_statements_whole():
    code = Code("def f():\n    a(1); b(2)  # both\n    c()\n")
    assert code.edited(WrapInWith(code["a(1)"], code["b(2)"], "w()")) == "def f():\n    with w():\n        a(1); b(2)  # both\n    c()\n"
    assert "shares its line" in code.refusal(WrapInWith(code["b(2)"], code["b(2)"], "w()"))


def test_wrap_in_try_takes_the_comment_that_ends_the_block_inside():
    code = Code("def f():\n    a()\n    return b()\n    # the end\n")
    expected = "def f():\n    m.eval()\n    try:\n        a()\n        return b()\n        # the end\n    finally:\n        m.train(w)\n"
    edits = [InsertBefore(code["a()"], "m.eval()"), WrapInTry(code["a()"], code["return b()"], "m.train(w)")]
    assert code.edited(*edits) == expected


NEED_IMPORT = {
    "f(a)\n": "import torch\nf(a, k=1)\n",
    "import torch\nf(a)\n": "import torch\nf(a, k=1)\n",
    "import torch.nn as nn\nf(a)\n": "import torch\nimport torch.nn as nn\nf(a, k=1)\n",
    "import os\nf(a)\nimport sys\n": "import os\nimport torch\nf(a, k=1)\nimport sys\n",
    '"""Doc."""\nfrom __future__ import annotations\nf(a)\n': '"""Doc."""\nfrom __future__ import annotations\nimport torch\nf(a, k=1)\n',
    "#!/usr/bin/env python\n# licence\n\nf(a)\n": "#!/usr/bin/env python\n# licence\n\nimport torch\nf(a, k=1)\n",
    "try:\n    import torch\nexcept ImportError:\n    raise\nf(a)\n": "import torch\ntry:\n    import torch\nexcept ImportError:\n    raise\nf(a, k=1)\n",
}


@pytest.mark.parametrize("before", NEED_IMPORT)
def test_need_import(before):
    code = Code(before)
    assert code.edited(AddKeyword(code["f(a)"], "k", "1"), NeedImport("torch")) == NEED_IMPORT[before]


@pytest.mark.parametrize(
    ("text", "statement", "reason"),
    [
        ("a(); b()\n", "b()", "shares its line"),
        ("\x0cb()\n", "b()", "form feed"),
        ("if c: a(); b()\n", "b()", "shares its line"),
    ],
)
def test_refusals_say_why(text, statement, reason):
    code = Code(text)
    assert reason in code.refusal(InsertBefore(code[statement], "new()"))


def test_both_quotes_taken_is_refused():
    code = Code("print(f\"{f'{g(x)}'}\")\n")
    assert "quote" in code.refusal(AddKeyword(code["g(x)"], "k", '"cpu"'))


def test_overlapping_groups_wait_and_others_go_on():
    code = Code("y = x.data\nz = f(a)\n")
    first, second = ChangeTail(code["x.data"], Span(4, 5), ("detach",)), ReplaceExpression(code["x.data"], "w")
    result = apply_groups(code.source, code.tree, [[first], [second], [AddKeyword(code["f(a)"], "k", "1")]])
    assert result.data == b"y = x.detach()\nz = f(a, k=1)\n"
    assert (result.applied, result.waiting) == ((0, 2), (1,))


def test_a_group_is_applied_whole_or_not_at_all():
    code = Code("y = x.data\na(); b()\n")
    reason = code.refusal(ChangeTail(code["x.data"], Span(4, 5), ("detach",)), InsertBefore(code["b()"], "new()"))
    assert "shares its line" in reason


def test_two_fixes_on_one_line_compose():
    code = Code("y = f(a.data, b.data)\n")
    groups = [[ChangeTail(code["a.data"], Span(6, 7), ("detach",))], [ChangeTail(code["b.data"], Span(14, 15), ("detach",))]]
    groups.append([AddKeyword(code["f(a.data, b.data)"], "k", "1")])
    assert apply_groups(code.source, code.tree, groups).data == b"y = f(a.detach(), b.detach(), k=1)\n"
