"""Which places of a function run together, and which are sure to follow."""

from __future__ import annotations

import ast
import textwrap

import pytest

from torchfix_codemods.model import FileModel
from torchfix_codemods.model.branches import exclusive, sure_to_follow
from torchfix_codemods.source import Source


def calls_of(code: str):
    """The model of a file, and its calls by name."""
    file = FileModel(Source("code.py", textwrap.dedent(code).encode()))
    return file, {call.func.id: call for call in file.index.all(ast.Call)}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("if c:\n    a()\nelse:\n    b()", True),
        ("if c:\n    a()\nelif d:\n    x()\nelse:\n    b()", True),
        ("if c:\n    a()\nb()", False),
        ("if c:\n    a()\n    raise x\nb()", True),
        ("for i in x:\n    if i:\n        a()\n        continue\n    b()", True),
        ("try:\n    a()\nexcept E:\n    b()", True),
        ("try:\n    a()\nfinally:\n    b()", False),
        ("try:\n    a()\nexcept E:\n    pass\nelse:\n    b()", False),
        ("try:\n    x()\nexcept E:\n    a()\nexcept F:\n    b()", True),
        ("match c:\n    case 1:\n        a()\n    case _:\n        b()", True),
        ("a() if c else b()", True),
        ("if a():\n    b()", False),
        ("a(b())", False),
    ],
)
def test_exclusive(code, expected):
    file, calls = calls_of(code)
    assert exclusive(file.flow, calls["a"], calls["b"]) is expected


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("a()\nb()\nd()", "bd"),
        ("if c:\n    a()\n    b()\nelse:\n    d()\ne()", "be"),
        ("with c:\n    a()\ntry:\n    b()\nexcept E:\n    d()", "b"),
        ("for i in x:\n    if i:\n        a()\n    b()\nd()", "b"),
        ("try:\n    a()\nexcept E:\n    d()\nelse:\n    e()\nfinally:\n    b()", "eb"),
        ("try:\n    x()\nexcept E:\n    a()\nelse:\n    e()\nfinally:\n    b()\nd()", ""),
        ("a()\ntry:\n    b()\nexcept E:\n    d()\nfinally:\n    e()", "be"),
        ("a()\nif c:\n    b()\nd()", "d"),
        ("def f():\n    a()\n    if c:\n        return\n    b()", ""),
    ],
)
def test_sure_to_follow(code, names):
    file, calls = calls_of(code)
    following = list(sure_to_follow(file.flow, file.flow.statement(calls["a"])))
    plain = [statement.value.func.id for statement in following if isinstance(statement, ast.Expr)]
    assert "".join(plain) == names


def test_functions_can_be_asked_before_anything_else():
    file, calls = calls_of("class A:\n    def run(self): ...\n\nthing = A()\na(thing.run)\nthing.run")
    assert file.functions.targets(calls["a"]) == ()
