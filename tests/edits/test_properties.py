"""Whatever an edit is applied to: the rest stays byte for byte, the file parses, and no comment is lost."""

from __future__ import annotations

import ast
import io
import tokenize

from hypothesis import given, settings
from hypothesis import strategies as st

from torchfix_codemods.edits import AddDecorator, AddKeyword, ChangeTail, InsertAfter, InsertBefore, WrapInTry, WrapInWith
from torchfix_codemods.edits.apply import apply_groups
from torchfix_codemods.edits.claims import clash, group_claims, targets
from torchfix_codemods.edits.segments import Layout
from torchfix_codemods.source import Source

SIMPLE = [
    "x = f(a.data)", "g(y, k=2)  # why", "z = w.data[0]; h(z)", "t = '''two\n  lines'''", "é = 'ü'.upper()", "pass", 'p(f"{a.data:.3f}")',
    "q = (a.data +\n  b)", "del x", "r = [v.data for v in g(m)]", "f(\n  a,  # first\n  *b,\n)", "s = a.data \\\n  + 1", "lambda: f(a.data)",
]  # fmt: skip
HEADS = [
    "if f(c):",
    "for i in g(n.data):",
    "while c.data:",
    "with o() as w:",
    "def m(self, d=f(a)):",
    "class K(f(B)):",
    "try:",
    "async def n():",
]
TAILS = {"if f(c):": ["", "else:", "elif d.data:"], "try:": ["finally:", "except E as e:"], "for i in g(n.data):": ["", "else:"]}


@st.composite
def blocks(draw, depth=0):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            lines.append("# a comment")
        if depth < 2 and draw(st.integers(0, 2)) == 0:
            head = draw(st.sampled_from(HEADS))
            lines += ["@deco(a.data)"] if head.startswith(("def", "async")) and draw(st.booleans()) else []
            lines += [head, *indent(draw(blocks(depth + 1)))]
            tail = draw(st.sampled_from(TAILS.get(head, [""])))
            lines += [tail, *indent(draw(blocks(depth + 1)))] if tail else []
        else:
            lines.append(draw(st.sampled_from(SIMPLE)))
        if draw(st.integers(0, 3)) == 0:
            lines.append("")
    return lines


def indent(lines):
    return ["    " + line if line else line for line in lines]


@st.composite
def sources(draw):
    text = "\n".join(draw(blocks()))
    if draw(st.booleans()):
        text = text.replace("    ", "\t")
    text += draw(st.sampled_from(["", "\n", "\n\n# the end"]))
    return Source("x.py", text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode())


@st.composite
def edits_of(draw, source, tree):
    makers = {ast.Call: _keyword, ast.Attribute: _tail, ast.FunctionDef: _decorator}
    nodes = [node for node in ast.walk(tree) if type(node) in makers or isinstance(node, ast.stmt)]
    node = draw(st.sampled_from(nodes))
    span = source.span(node)
    if type(node) in makers and draw(st.booleans()):
        return makers[type(node)](source, node, span)
    if not isinstance(node, ast.stmt):
        return makers[type(node)](source, node, span)
    return draw(
        st.sampled_from(
            [InsertBefore(span, "new()"), InsertAfter(span, "new()"), WrapInWith(span, span, "w()"), WrapInTry(span, span, "clean()")]
        )
    )


def _keyword(_, __, span):
    return AddKeyword(span, "new", "1")


def _tail(source, node, span):
    return ChangeTail(span, source.span(node.value), ("new",))


def _decorator(_, __, span):
    return AddDecorator(span, "new()")


def comments(data):
    return sorted(t.string for t in tokenize.generate_tokens(io.StringIO(data.decode(), newline="").readline) if t.type == tokenize.COMMENT)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_one_edit_leaves_the_rest_alone(data):
    source = data.draw(sources())
    tree = ast.parse(source.text)
    edit = data.draw(edits_of(source, tree))
    result = apply_groups(source, tree, [[edit]])
    if result.refused:
        assert result.data == source.data
        return
    ast.parse(result.data.decode())
    assert comments(result.data) == comments(source.data)
    assert "new" in result.data.decode() or "w()" in result.data.decode() or "clean()" in result.data.decode()
    layout = Layout(source, tree)
    lines = layout.segment(layout.common([layout.innermost(span) for span in targets(edit)])).span
    assert result.data.startswith(source.data[: lines.start])
    assert result.data.endswith(source.data[lines.end :])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_many_groups_in_one_pass(data):
    source = data.draw(sources())
    tree = ast.parse(source.text)
    groups = [[data.draw(edits_of(source, tree))] for _ in range(data.draw(st.integers(2, 5)))]
    result = apply_groups(source, tree, groups)
    assert sorted([*result.applied, *result.waiting, *result.refused]) == list(range(len(groups)))
    ast.parse(result.data.decode())
    assert comments(result.data) == comments(source.data)
    applied = [group_claims(groups[i]) for i in result.applied]
    assert not any(clash(a, b) for i, a in enumerate(applied) for b in applied[:i])


@given(st.data())
def test_spans_give_back_the_text(data):
    source = data.draw(sources())
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.Name):
            assert source.code(node) == node.id
            start = source.span(node).start
            line, column = source.position(start)
            assert source.line(line)[column - 1 :].startswith(node.id)
