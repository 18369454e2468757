"""Rules see through the ways in which the same code can be written."""

from __future__ import annotations

import ast
import re

import pytest

from .collection import CASES, REWRITES, RULES, findings_in, fixed, identify


def crlf(code: str) -> str | None:
    return code.replace("\n", "\r\n")


def tabs(code: str) -> str | None:
    """Tabs for four spaces; not where nothing shows what the file indents by, or where strings would change."""
    if '"""' in _without_docstrings(code) or not re.search(r"^ {4}", code, re.MULTILINE):
        return None
    return re.sub(r"^( {4})+", lambda m: "\t" * (len(m.group()) // 4), code, flags=re.MULTILINE)


def no_final_newline(code: str) -> str | None:
    return code.rstrip("\n")


def licence_above(code: str) -> str | None:
    return "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Copyright: somebody\n" + code


def byte_order_mark(code: str) -> str | None:
    return "\ufeff" + code


def alias(code: str) -> str | None:
    """`import torch as th`; only where `torch` is imported by that one line."""
    if not re.search(r"^import torch$", code, re.MULTILINE) or re.search(
        r"import torch\.|(?<!import )\btorch\s*(=|,)|def .*\btorch\b|\bth\b", code
    ):
        return None
    renamed = re.sub(r"^import torch$", "import torch as th", code, flags=re.MULTILINE)
    return re.sub(r"(?<![\w.\"'`])torch\.(?=\w)", "th.", renamed) if "from torch" not in code else _alias_beside_from_imports(renamed)


def _alias_beside_from_imports(code: str) -> str:
    lines = code.split("\n")
    return "\n".join(line if line.startswith("from torch") else re.sub(r"(?<![\w.\"'`])torch\.(?=\w)", "th.", line) for line in lines)


def inside_try(code: str) -> str | None:
    return _indented(code, "try:\n", "\nexcept ImportError:\n    raise\n")


def inside_function(code: str) -> str | None:
    return _indented(code, "def outer():\n", "\n    return locals()\n")


def _indented(code: str, head: str, tail: str) -> str | None:
    """The code one level deeper; not where that changes its meaning (multi-line strings, imports of names, scripts)."""
    if "__future__" in code or "__main__" in code or _has_multiline_string(code):
        return None
    body = "\n".join("    " + line if line else line for line in code.rstrip("\n").split("\n"))
    return head + body + tail


def _has_multiline_string(code: str) -> bool:
    return any(
        isinstance(n, (ast.Constant, ast.JoinedStr)) and n.lineno != n.end_lineno for n in ast.walk(ast.parse(code)) if hasattr(n, "lineno")
    )


def _without_docstrings(code: str) -> str:
    return re.sub(r'^ *"""[^"\n]*"""$', "", code, flags=re.MULTILINE)


DISGUISES = [crlf, tabs, no_final_newline, licence_above, byte_order_mark, alias]
MOVED = [inside_try, inside_function]


def _changes_imports(case) -> bool:
    """A new import stands at top level, and only one that stands there is taken away, wherever the rest was moved to."""
    before, after = (re.findall(r"^(?:from|import) .*$", path.read_text(), re.MULTILINE) for path in (case.before, case.after))
    return sorted(before) != sorted(after)


def _worn(cases, disguises):
    """The pairs of a case and a disguise that suits it."""
    for case in cases:
        for disguise in disguises:
            paths = (case.before, case.after) if case.is_rewrite else (case.before,)
            sides = [disguise(path.read_text()) for path in paths if path]
            moved_away = disguise is inside_function and _has_neighbours(case)
            if (
                None not in sides
                and not moved_away
                and not (case.is_rewrite and disguise in {inside_try, alias} and _changes_imports(case))
            ):
                yield pytest.param(case, *sides, id=f"{identify(case)}-{disguise.__name__}")


def _has_neighbours(case) -> bool:
    """Other files of the case know its functions at top level."""
    return any(path.name not in {"before.py", "after.py"} for path in case.before.parent.glob("*.py"))


REFUSALS = [case for case in CASES if not case.is_rewrite]


@pytest.mark.parametrize(("case", "before", "after"), list(_worn(REWRITES, [*DISGUISES, inside_try])))
def test_rewrites_in_disguise(case, before, after):
    assert fixed(RULES[case.rule], case.before, before.encode()).decode() == after


@pytest.mark.parametrize(("case", "before"), list(_worn(REFUSALS, [*DISGUISES, *MOVED])))
def test_refusals_in_disguise(case, before):
    assert [finding for finding in findings_in(RULES[case.rule], case.before, before.encode()) if finding.edits] == []


@pytest.mark.parametrize("disguise", [*DISGUISES, *MOVED])
def test_every_disguise_suits_most_cases_and_changes_them(disguise):
    worn = [disguise(case.before.read_text()) for case in CASES]
    suited = [(case, code) for case, code in zip(CASES, worn, strict=True) if code is not None]
    assert len(suited) > len(CASES) // 3
    unchanged = [identify(case) for case, code in suited if code == case.before.read_text()]
    assert len(unchanged) < len(suited) // 10
    assert [identify(case) for case, code in suited if not _is_python(code)] == []


def _is_python(code) -> bool:
    try:
        ast.parse(code.removeprefix("\ufeff"))
    except SyntaxError:
        return False
    return True
