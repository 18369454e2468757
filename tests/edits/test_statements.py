"""Edits of statements, on the layouts that people write: the exact text that comes out."""

from __future__ import annotations

import ast

import pytest

from torchfix_codemods.edits import (
    AddDecorator,
    ChangeTail,
    DeleteStatement,
    InsertAfter,
    InsertBefore,
    MoveBefore,
    ReplaceStatement,
    Unwrap,
    WrapInIf,
    WrapInTry,
    WrapInWith,
)
from torchfix_codemods.source import Span

from .code import Code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import a\n\nf(x)\n", "import a\n\nnew()\n\nf(x)\n"),
        ("import a\n\n\n# about\ndef g():\n    f(x)\n", "import a\n\n\nnew()\n\n\n# about\ndef g():\n    f(x)\n"),
    ],
)
def test_insert_before_set_apart(before, after):
    code = Code(before)
    assert code.edited(InsertBefore(code.source.span(code.tree.body[1]), "new()", apart=True)) == after


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
        ("f(x); g(x)\n", "f(x)", "new()\nf(x); g(x)\n"),
        ("\x0cf(x)\n", "f(x)", "\x0cnew()\nf(x)\n"),
        ("a()\nif c:\r\n  f(x)\r\n", "f(x)", "a()\nif c:\r\n  new()\r\n  f(x)\r\n"),
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
        ("b(); a()  # why\n", "a()", "b(); a()  # why\nnew(1)\nnew(2)\n"),
        ("a()\n# about b\nb()\n", "a()", "a()\nnew(1)\nnew(2)\n# about b\nb()\n"),
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("b()\nif c:\n    a()\n    # why\n    z()  # reset\n", "# why\nz()  # reset\nb()\nif c:\n    a()\n"),
        ("def f():\n\tb()\n\tif c:\n\t\tz()\n\t\ta()\n", "def f():\n\tz()\n\tb()\n\tif c:\n\t\ta()\n"),
    ],
)
def test_move_out_of_a_block_takes_the_outer_indentation(before, after):
    code = Code(before)
    assert code.edited(MoveBefore(code["z()"], code["b()"])) == after


def test_moving_the_only_statement_of_a_block_is_refused():
    code = Code("b()\nif c:\n    z()\n")
    assert "nothing would be left" in code.refusal(MoveBefore(code["z()"], code["b()"]))


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


def test_wrap_in_try_leaves_the_comment_of_the_next_statement_outside():
    code = Code("def f():\n    a()\n    # about b\n    b()\n")
    expected = "def f():\n    try:\n        a()\n    finally:\n        z()\n    # about b\n    b()\n"
    assert code.edited(WrapInTry(code["a()"], code["a()"], "z()")) == expected


def test_wrap_in_try_takes_the_last_comments_of_the_block_over_blank_lines():
    code = Code("def f():\n    a()\n\n    # the end\n\n# of the module\n")
    expected = "def f():\n    try:\n        a()\n\n        # the end\n    finally:\n        z()\n\n# of the module\n"
    assert code.edited(WrapInTry(code["a()"], code["a()"], "z()")) == expected


def test_wrap_expands_a_block_that_shares_the_line_of_its_header():
    code = Code("with a: b(1); c(2)  # why\n")
    assert code.edited(WrapInWith(code["b(1)"], code["c(2)"], "w()")) == "with a:\n    with w():\n        b(1); c(2)  # why\n"


def test_nothing_goes_above_a_future_import():
    code = Code("from __future__ import annotations\na()\n")
    assert "__future__" in code.refusal(InsertBefore(code["from __future__ import annotations"], "new()"))


def test_an_elif_has_no_statements_of_its_own_around_it():
    code = Code("if a:\n    pass\nelif b:\n    pass\n")
    assert "elif" in code.refusal(InsertBefore(code["elif b:\n    pass"], "new()"))


@pytest.mark.parametrize(
    ("before", "statement", "after"),
    [
        ("a()\nb()\nc()\n", "b()", "a()\nc()\n"),
        ("a()\n\n# about b\nb()\nc()\n", "b()", "a()\n\n# about b\nc()\n"),
        ("if x:\r\n\ta()\r\n\tb()\r\n", "a()", "if x:\r\n\tb()\r\n"),
        ("def f():\n    b()\n\n    c()\n", "b()", "def f():\n\n    c()\n"),
        ("if x:\n    # above\n    b()  # behind\n    c()\n", "b()", "if x:\n    # above\n    # behind\n    c()\n"),
        ("a(); b()  # both\n", "b()", "a()  # both\n"),
        ("a(); b(); c();\n", "b()", "a(); c();\n"),
        ("if x: a(); b()\n", "a()", "if x:\n    b()\n"),
    ],
)
def test_delete_statement(before, statement, after):
    code = Code(before)
    assert code.edited(DeleteStatement(code[statement])) == after


@pytest.mark.parametrize(
    ("before", "statement", "says"),
    [
        ("if x:\n    b()\n", "b()", "nothing would be left"),
        ("a()\nb()  # why\n", "b()", "a comment would be lost"),
        ("if x: b()\n", "b()", "nothing would be left"),
    ],
)
def test_delete_statement_refusals(before, statement, says):
    code = Code(before)
    assert says in code.refusal(DeleteStatement(code[statement]))


@pytest.mark.parametrize(
    ("before", "statement", "after"),
    [
        ("x = f(a)\n", "x = f(a)", "x = g(a)\nx.h()\n"),
        ("# above\nx = f(a)  # behind\ny()\n", "x = f(a)", "# above\nx = g(a)\nx.h()  # behind\ny()\n"),
        ("if c:\r\n  x = f(a)\r\n", "x = f(a)", "if c:\r\n  x = g(a)\r\n  x.h()\r\n"),
    ],
)
def test_replace_statement(before, statement, after):
    code = Code(before)
    assert code.edited(ReplaceStatement(code[statement], "x = g(a)\nx.h()")) == after


WITH = 'def f():\n    """doc"""\n    # why\n    with g():\n        # first\n        for x in y:\n            s = """\n  text"""\n            yield x\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (WITH, 'def f():\n    """doc"""\n    # why\n    # first\n    for x in y:\n        s = """\n  text"""\n        yield x\n'),
        ("with g():\n\ta()\n\n\tb()\nc()\n", "a()\n\nb()\nc()\n"),
        ("# above\nwith g():  # behind\n    # first\n    a()\n", "# above\n# behind\n# first\na()\n"),
    ],
)
def test_unwrap(before, after):
    code = Code(before)
    [statement] = [node for node in ast.walk(code.tree) if isinstance(node, ast.With)]
    assert code.edited(Unwrap(code.source.span(statement))) == after


def test_unwrap_refuses_a_with_on_one_line():
    code = Code("with g(): a()\n")
    assert "lines of its own" in code.refusal(Unwrap(code.source.span(code.tree.body[0])))


def test_delete_two_statements_of_one_line():
    code = Code("a(); b(); c()\n")
    assert code.edited(DeleteStatement(code["a()"]), DeleteStatement(code["c()"])) == "b()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\n\n# main\nb()\nc()\n# end\n", "a()\n\nif t:\n    # main\n    b()\n    c()\n    # end\n"),
        ('a()\nb()\ns = """\nx"""\nc()', 'a()\nif t:\n    b()\n    s = """\nx"""\n    c()'),
        ("if x:\n\ty()\nb()\r\nc()\n", "if x:\n\ty()\nif t:\r\n\tb()\r\n\tc()\n"),
        ("b()\n\n\ndef g():\n    d()\n\n    e()\n\n\nc()\n", "if t:\n    b()\n\n\n    def g():\n        d()\n\n        e()\n\n\n    c()\n"),
    ],
)
def test_wrap_in_if(before, after):
    code = Code(before)
    assert code.edited(WrapInIf(code["b()"], code["c()"], "t")) == after
