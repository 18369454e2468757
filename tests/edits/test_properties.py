"""Whatever an edit is applied to: the rest stays byte for byte, the file parses, and no comment is lost."""

from __future__ import annotations

import ast
import copy
import io
import tokenize

from hypothesis import given, settings
from hypothesis import strategies as st

from torchfix_codemods.edits import (
    AddDecorator,
    AddKeyword,
    ChangeTail,
    InsertAfter,
    InsertBefore,
    ReplaceExpression,
    WrapInTry,
    WrapInWith,
)
from torchfix_codemods.edits.apply import apply_groups
from torchfix_codemods.edits.claims import clash, group_claims, targets
from torchfix_codemods.edits.segments import Layout
from torchfix_codemods.source import Source

SIMPLE = [
    "x = f(a.data)", "g(y, k=2)  # why", "z = w.data[0]; h(z)", "t = '''two\n  lines'''", "é = 'ü'.upper()", "pass", 'p(f"{a.data:.3f}")',
    "q = (a.data +\n  b)", "del x", "r = [v.data for v in g(m)]", "f(\n  a,  # first\n  *b,\n)", "s = a.data \\\n  + 1", "lambda: f(a.data)",
    "f(**a.data)", "f(\n  a,  # first\n  **b.data\n)", "w = -a.data ** f(b)", "g(x for x in a.data)", "y = x.data;", "u = [a.data for a in f(b) if c.data]",
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
    """An edit of a random node, and the tree that the file must have after it."""
    node = draw(st.sampled_from([node for node in ast.walk(tree) if isinstance(node, (ast.Call, ast.Attribute, ast.stmt))]))
    span = source.span(node)
    kinds = [InsertBefore(span, "new()"), InsertAfter(span, "new()"), WrapInWith(span, span, "new()"), WrapInTry(span, span, "new()")]
    if isinstance(node, ast.Call):
        kinds = [AddKeyword(span, "new", "1"), ChangeTail(span, span, ("new",)), ReplaceExpression(span, "new if a else b")]
    elif isinstance(node, ast.Attribute):
        kinds = [ChangeTail(span, source.span(node.value), ("new",)), ReplaceExpression(span, "lambda: new")]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        kinds.append(AddDecorator(span, "new"))
    edit = draw(st.sampled_from(kinds))
    return edit, ast.dump(Expected(node, edit).visit(copy.deepcopy(tree)))


class Expected(ast.NodeTransformer):
    """Makes an edit on the syntax tree alone."""

    def __init__(self, node, edit):
        self.place, self.edit = (type(node), node.lineno, node.col_offset, node.end_lineno, node.end_col_offset), edit

    def visit(self, node):
        place = (type(node), *(getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")))
        return self.changed(node) if place == self.place else self.generic_visit(node)

    def changed(self, node):
        match self.edit:
            case AddKeyword(_, name, value):
                place = next((i for i, keyword in enumerate(node.keywords) if keyword.arg is None), len(node.keywords))
                node.keywords.insert(place, ast.keyword(name, expression(value)))
            case ReplaceExpression(_, code):
                return expression(code)
            case ChangeTail(target, keep, (name,)):
                return ast.Call(ast.Attribute(node if target == keep else node.value, name, ast.Load()), [], [])
            case AddDecorator(_, code):
                node.decorator_list.append(expression(code))
            case InsertBefore(_, code):
                return [*ast.parse(code).body, node]
            case InsertAfter(_, code):
                return [node, *ast.parse(code).body]
            case WrapInWith(_, _, item):
                return ast.With([ast.withitem(expression(item))], [node])
            case WrapInTry(_, _, cleanup):
                return ast.Try([node], [], [], ast.parse(cleanup).body)
        return node


def expression(code):
    return ast.parse(code, mode="eval").body


def comments(data):
    return sorted(t.string for t in tokenize.generate_tokens(io.StringIO(data.decode(), newline="").readline) if t.type == tokenize.COMMENT)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_one_edit_changes_what_it_says_and_nothing_else(data):
    source = data.draw(sources())
    tree = ast.parse(source.text)
    edit, expected = data.draw(edits_of(source, tree))
    result = apply_groups(source, tree, [[edit]])
    if result.refused:
        assert result.data == source.data
        lossy = isinstance(edit, ReplaceExpression) and "comment" in result.refused[0]
        assert lossy or "elif" in result.refused[0] or "shares its line" in result.refused[0]
        return
    assert ast.dump(ast.parse(result.data.decode())) == expected
    assert comments(result.data) == comments(source.data)
    layout = Layout(source, tree)
    lines = layout.segment(layout.common([layout.innermost(span) for span in targets(edit)])).span
    assert result.data.startswith(source.data[: lines.start])
    assert result.data.endswith(source.data[lines.end :])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_many_groups_in_one_pass(data):
    source = data.draw(sources())
    tree = ast.parse(source.text)
    groups = [[data.draw(edits_of(source, tree))[0]] for _ in range(data.draw(st.integers(2, 5)))]
    result = apply_groups(source, tree, groups)
    assert sorted([*result.applied, *result.waiting, *result.refused]) == list(range(len(groups)))
    assert comments(result.data) == comments(source.data)
    ast.parse(result.data.decode())
    alone = [apply_groups(source, tree, [groups[i]]) for i in result.applied]
    assert all(one.applied for one in alone)
    applied = [group_claims(groups[i]) for i in result.applied]
    assert not any(clash(a, b) for i, a in enumerate(applied) for b in applied[:i])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_groups_change_nothing(data):
    source = data.draw(sources())
    assert apply_groups(source, ast.parse(source.text), []).data == source.data


@given(st.data())
def test_spans_give_back_the_text(data):
    source = data.draw(sources())
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.Name):
            assert source.code(node) == node.id
            start = source.span(node).start
            line, column = source.position(start)
            assert source.line(line)[column - 1 :].startswith(node.id)
