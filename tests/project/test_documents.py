"""What is generated from the rules and their fixtures is current."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchfix_codemods.measured import place
from torchfix_codemods.transforms import CHAIN

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "generate.py"
RULE = next(rule for rule in CHAIN if rule.name == "nn-init-data-arg")


@pytest.fixture
def generate(tmp_path, monkeypatch):
    """The script, with the fixtures of one rule and all pages in a folder of their own."""
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shutil.copytree(ROOT / "fixtures" / RULE.name, tmp_path / "fixtures" / RULE.name)
    shutil.copytree(ROOT / "docs" / "rules", tmp_path / "docs" / "rules")
    shutil.copy(ROOT / "README.md", tmp_path)
    for name, path in {"FIXTURES": "fixtures", "PAGES": "docs/rules", "README": "README.md"}.items():
        monkeypatch.setattr(module, name, tmp_path / path)
    return module


def test_everything_generated_is_current():
    result = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, check=False)
    assert (result.stdout.decode(), result.stderr.decode(), result.returncode) == ("", "", 0)


@pytest.mark.parametrize("name", ["harness.py", "weights_init/after.py", "weights_init/contract.toml"])
def test_a_changed_case_is_noticed(generate, name):
    assert list(generate.outdated([RULE])) == []
    with (generate.FIXTURES / RULE.name / name).open("a") as file:
        file.write("# changed\n")
    assert list(generate.outdated([RULE])) == [place(RULE)]


def test_a_new_silent_case_is_noticed(generate):
    case = generate.FIXTURES / RULE.name / "another"
    case.mkdir()
    (case / "before.py").write_text("import torch\n")
    assert list(generate.outdated([RULE])) == [place(RULE)]


def test_pages_that_differ_or_have_no_rule_are_noticed(generate):
    page = generate.PAGES / f"{RULE.name}.md"
    assert generate.documents([RULE])[page] == page.read_text()
    assert generate.orphans() == []
    (generate.PAGES / "gone.md").write_text("")
    assert generate.orphans() == [generate.PAGES / "gone.md"]


def test_the_list_in_the_readme_is_between_its_marks(generate):
    text = generate.README.read_text()
    start, end = text.index("<!-- rules: written"), text.index("<!-- end of rules -->")
    assert all(f"`{rule.name}`" in text[start:end] for rule in CHAIN)
    generate.README.write_text(text[: text.index("\n", start) + 1] + text[end:])
    assert generate.documents([])[generate.README] == text


def test_an_execution_of_a_case_that_was_edited_is_shown_as_stale(generate):
    def page():
        return generate.documents([])[generate.VERIFIED]

    assert f"| {RULE.name} |" in " ".join(page().split())
    assert "changed since 2" not in page()
    with (generate.FIXTURES / RULE.name / "weights_init" / "before.py").open("a") as file:
        file.write("# changed\n")
    assert "1 changed since 2" in page()
