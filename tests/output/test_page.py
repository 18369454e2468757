"""The pages about rules."""

from __future__ import annotations

import re

from torchfix_codemods.measured import Measured, Row
from torchfix_codemods.output.page import index, names, overview, page
from torchfix_codemods.transforms import CHAIN

RULE = next(rule for rule in CHAIN if rule.name == "nn-init-data-arg")
ROWS = (
    Row("script", "cpu", "printed", "a | b", "`c`", "before 'a | b', after '`c`'", "holds"),
    Row("advice", "cuda", "peak memory", "", "", "less", "not verified"),
)


def test_page_without_measurements():
    text = page(RULE, None)
    assert text.startswith("# nn-init-data-arg\n\n`nn.init` function called on `.data` instead of the parameter.\n\nCategory inplace · ")
    assert text.endswith("nn.init.html\n")


def test_proof():
    text = page(RULE, Measured(1, 2, 3, ("advice",), {}, ROWS))
    proof = text.partition("## Proof\n\n")[2]
    assert proof.startswith("Tested on 1 rewrite, 2 reports, and 3 cases in which the rule has to stay silent.")
    assert "cases marked * follow" in proof
    assert "not verified* needs a device" in proof
    assert [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in proof.splitlines()[4:]] == [
        ["script", "cpu", "printed", "`a \\| b`", "`` `c` ``", "`` before 'a \\| b', after '`c`' ``", "holds"],
        ["advice*", "cuda", "peak memory", "", "", "`less`", "not verified"],
    ]


def test_proof_of_what_was_seen_everywhere():
    proof = page(RULE, Measured(1, 0, 1, (), {}, ROWS[:1])).partition("## Proof\n\n")[2]
    assert proof.startswith("Tested on 1 rewrite, and 1 case in which")
    assert "*" not in proof


def test_columns_stand_below_each_other():
    lines = list(overview(CHAIN, "docs/rules/"))
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == len(CHAIN) + 2
    assert lines[2].startswith(f"| [`{CHAIN[0].name}`](docs/rules/{CHAIN[0].name}.md) ")


def test_names_are_listed_by_category():
    text = "\n".join(names(CHAIN))
    assert sorted(re.findall(r"`(.*?)`", text)) == sorted(rule.name for rule in CHAIN)
    assert text.startswith("* **modes**: `")
    assert max(map(len, text.splitlines())) <= 125


def test_index_has_every_rule_once_below_its_category():
    listed, category = [], ""
    for line in index(CHAIN).splitlines():
        category = line.removeprefix("## ") if line.startswith("## ") else category
        listed += [(category, name) for name in re.findall(r"^\| \[`(.*?)`\]", line)]
    assert sorted(listed) == sorted((rule.category.value, rule.name) for rule in CHAIN)
