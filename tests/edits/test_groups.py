"""Groups of edits: the imports they need, what waits, what is refused and why."""

from __future__ import annotations

import warnings

import pytest

from torchfix_codemods.edits import (
    AddDecorator,
    AddKeyword,
    ChangeTail,
    InsertBefore,
    NeedImport,
    ReplaceExpression,
)
from torchfix_codemods.edits.apply import apply_groups
from torchfix_codemods.source import Span

from .code import Code

NEED_IMPORT = {
    "f(a)\n": "import torch\nf(a, k=1)\n",
    "import torch\nf(a)\n": "import torch\nf(a, k=1)\n",
    "import torch.nn as nn\nf(a)\n": "import torch\nimport torch.nn as nn\nf(a, k=1)\n",
    "import os\nf(a)\nimport sys\n": "import os\nimport torch\nf(a, k=1)\nimport sys\n",
    '"""Doc."""\nfrom __future__ import annotations\nf(a)\n': '"""Doc."""\nfrom __future__ import annotations\nimport torch\nf(a, k=1)\n',
    "#!/usr/bin/env python\n# licence\n\nf(a)\n": "#!/usr/bin/env python\n# licence\n\nimport torch\nf(a, k=1)\n",
    "try:\n    import torch\nexcept ImportError:\n    raise\nf(a)\n": "import torch\ntry:\n    import torch\nexcept ImportError:\n    raise\nf(a, k=1)\n",
}

NEED_IMPORT |= {
    "# licence\nf(a)\n": "# licence\nimport torch\nf(a, k=1)\n",
    "import os; import torch; f(a)\n": "import os; import torch; f(a, k=1)\n",
    "import os; f(a)\n": "import torch\nimport os; f(a, k=1)\n",
    "import torch.nn\nf(a)\n": "import torch.nn\nf(a, k=1)\n",
    "import os\r\nif c:\r\n\tf(a)\r\n": "import os\r\nimport torch\r\nif c:\r\n\tf(a, k=1)\r\n",
}


@pytest.mark.parametrize("before", NEED_IMPORT)
def test_need_import(before):
    code = Code(before)
    assert code.edited(AddKeyword(code["f(a)"], "k", "1"), NeedImport("torch")) == NEED_IMPORT[before]


def test_an_import_that_would_share_the_line_of_the_docstring_is_refused():
    code = Code("'doc'; f(a)\n")
    assert "import" in code.refusal(AddKeyword(code["f(a)"], "k", "1"), NeedImport("torch"))


def test_groups_share_the_imports_that_they_need():
    code = Code("import os\nf(a)\nimport sys\nf(b)\n")
    groups = [[AddKeyword(code[f"f({x})"], "k", "1"), NeedImport("torch"), NeedImport("copy")] for x in "ba"]
    result = apply_groups(code.source, code.tree, groups)
    assert result.data == b"import os\nimport copy\nimport torch\nf(a, k=1)\nimport sys\nf(b, k=1)\n"


def test_a_refused_group_leaves_no_import_behind():
    code = Code("a(); b()\nf(x)\n")
    groups = [[InsertBefore(code["b()"], "new()"), NeedImport("torch")], [AddKeyword(code["f(x)"], "k", "1")]]
    result = apply_groups(code.source, code.tree, groups)
    assert (result.data, result.applied) == (b"a(); b()\nf(x, k=1)\n", (1,))


@pytest.mark.parametrize(
    ("text", "statement", "reason"),
    [
        ("a(); b()\n", "b()", "shares its line"),
        ("a()\rb()\r", "b()", "unusual line end"),
        ("b()  # \\\nc()\n", "b()", "backslash"),
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


def test_an_argument_goes_into_the_call_and_not_behind_it():
    code = Code("y = f(x)\n")
    span = code["f(x)"]
    result = apply_groups(code.source, code.tree, [[ChangeTail(span, span, ("detach",))], [AddKeyword(span, "k", "1")]])
    assert (result.data, result.applied) == (b"y = f(x, k=1).detach()\n", (0, 1))


def test_only_the_group_that_fails_is_refused():
    code = Code("a(); y = x.data\n")
    groups = [[InsertBefore(code["y = x.data"], "new()")], [ChangeTail(code["x.data"], code["x"], ("detach",))]]
    result = apply_groups(code.source, code.tree, groups)
    assert (result.data, result.applied, list(result.refused)) == (b"a(); y = x.detach()\n", (1,), [0])


@pytest.mark.parametrize(
    ("value", "name", "reason"),
    [("1 +", "k", "not an expression"), ("1", "b", "already")],
)
def test_new_code_that_can_not_stand_there_is_refused(value, name, reason):
    code = Code("f(a, b=1)\n")
    assert reason in code.refusal(AddKeyword(code["f(a, b=1)"], name, value))


def test_an_edit_of_the_wrong_kind_of_node_is_refused():
    code = Code("x = y\n")
    assert "expected" in code.refusal(AddKeyword(code["y"], "k", "1"))
    assert "expected" in code.refusal(AddDecorator(code["x = y"], "d()"))


def test_warnings_about_the_code_itself_are_not_given():
    code = Code("f(a, '\\.')\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert code.edited(AddKeyword(code["f(a, '\\.')"], "k", "1"), NeedImport("torch")) == "import torch\nf(a, '\\.', k=1)\n"
