"""The documentation of each rule is complete, and its example true."""

from __future__ import annotations

import inspect
import re

import pytest

from torchfix_codemods.engine import check, rewrite
from torchfix_codemods.rule import Category, Safety
from torchfix_codemods.source import Source
from torchfix_codemods.transforms import CHAIN

from .collection import ROOT

SECTIONS = ["Why", "Example", "Safety", "References"]

each_rule = pytest.mark.parametrize("rule", CHAIN, ids=lambda rule: rule.name)


def documentation(rule):
    return inspect.cleandoc(type(rule).__doc__)


@each_rule
def test_sections(rule):
    assert re.findall(r"^## (\w+)$", documentation(rule), re.MULTILINE) == SECTIONS


@each_rule
def test_example_is_what_the_rule_does(rule):
    before, after = (Source("example.py", code.encode()) for code in re.findall(r"```python\n(.*?)```", documentation(rule), re.DOTALL))
    result = rewrite(before, [rule], Safety.UNSAFE)
    if rule.safety is Safety.REPORT:
        assert result.data == before.data
        assert len(result.remaining) == 1
        assert check(after, [rule]) == ()
    else:
        assert result.data.decode() == after.text


@each_rule
def test_one_name_everywhere(rule):
    snake = rule.name.replace("-", "_")
    assert inspect.getfile(type(rule)).endswith(f"/{rule.category.value}/{snake}.py")
    assert type(rule).__name__ == "".join(part.capitalize() for part in rule.name.split("-"))


@each_rule
def test_references_are_links(rule):
    assert documentation(rule).rpartition("## References\n")[2].startswith("https://")


def test_every_rule_file_is_in_the_chain():
    files = {path.stem for path in (ROOT / "transforms").glob("*/*.py") if "(Rule)" in path.read_text()}
    assert files == {rule.name.replace("-", "_") for rule in CHAIN}


def test_categories_are_folders():
    assert {path.parent.name for path in (ROOT / "transforms").glob("*/__init__.py")} <= {category.value for category in Category}
