"""`rules`, `explain`, `verify` and help."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from torchfix_codemods.cli import learn
from torchfix_codemods.cli.light import parser
from torchfix_codemods.rule import Category, Rule, Safety
from torchfix_codemods.transforms import CHAIN

from .commands import run


class Optional(Rule):
    """Finds nothing.

    ## Why
    It stands for others.
    """

    name = "optional"
    category = Category.SCALARS
    safety = Safety.REPORT
    optional = True

    def find(self, _):
        return iter(())


def test_rules_lists_every_rule(tmp_path):
    lines = run("rules", cwd=tmp_path).stdout.decode().splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [[rule.name, rule.category.value, rule.safety.label] for rule in CHAIN]


def test_rules_tells_which_are_optional(monkeypatch, capsys):
    monkeypatch.setattr(learn, "all_rules", lambda: (Optional(), CHAIN[0]))
    assert learn.rules() == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", lines[1]) == ["optional", "scalars", "report", "when selected", "Finds nothing"]
    assert "always" in lines[2]


def test_explain(tmp_path):
    text = run("explain", "zero-grad-missing", cwd=tmp_path).stdout.decode()
    assert text.startswith("# zero-grad-missing\n\nTraining loop that never clears its gradients.\n")
    assert "## Safety" in text


def test_explain_prints_what_was_measured(tmp_path):
    lines = run("explain", "nn-init-data-arg", cwd=tmp_path).stdout.decode().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| weights_init ")]
    assert ["weights_init", "cpu", "raises", "`nothing`", "`nothing`", "`same`", "holds"] in rows
    assert any("cases in which the rule has to stay silent" in line for line in lines)


def test_explain_needs_no_torch_and_no_fixtures(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError")
    result = run("explain", "nn-init-data-arg", cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path)})
    assert result.returncode == 0
    assert b"## Proof" in result.stdout


def test_explain_says_how_to_get_an_optional_rule(monkeypatch, capsys):
    monkeypatch.setattr(learn, "all_rules", lambda: (Optional(),))
    assert learn.explain("optional") == 0
    text = capsys.readouterr().out
    assert "Category scalars · best fix: report · optional: runs only with `--select optional`" in text
    assert "## Proof" not in text


@pytest.mark.parametrize("arguments", [["explain", "zero-grad-mising"], ["verify", "zero-grad-mising"]])
def test_unknown_rule(tmp_path, arguments):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert "did you mean 'zero-grad-missing'?" in result.stderr.decode()


def test_verify_proves_a_rule(tmp_path):
    result = run("verify", "nn-init-data-arg", "--device", "cpu", cwd=tmp_path)
    assert result.returncode == 0
    assert "BREACH" not in result.stdout.decode()
    assert "nn-init-data-arg" in result.stdout.decode()


def test_verify_says_what_was_not_verified(tmp_path):
    import torch

    lines = run("verify", "nn-init-data-arg", "--device", "cuda", cwd=tmp_path).stdout.decode()
    assert ("not verified" in lines.replace("0 not verified", "")) != torch.cuda.is_available()


@pytest.mark.parametrize("arguments", [["verify", "--device", "tpu"], ["verify", "--fixtures", "nowhere"]])
def test_mistakes_of_verify(tmp_path, arguments):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr


def test_version_and_help(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == b"0.1.0\n"
    assert b"check" in run("--help", cwd=tmp_path).stdout
    assert b"--unsafe-fixes" in run("check", "--help", cwd=tmp_path).stdout
    assert run("nonsense", cwd=tmp_path).returncode == 2


def test_the_light_parser_and_typer_take_the_same_options(tmp_path):
    light = {flag for action in parser()._actions for flag in action.option_strings}
    text = run("check", "--help", cwd=tmp_path, environment={"COLUMNS": "200"}).stdout.decode()
    assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)) - {"--help"} == light


NET = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(3, 2)\n        self.labels = ['a', 'b']\n"


@pytest.fixture
def old_checkpoint(tmp_path):
    """A folder with a model's code, its pickle, and the script that converts it."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "net.py").write_text(NET)
    subprocess.run([sys.executable, "-c", "import net, torch; torch.save(net.Net(), '../old.pt')"], cwd=tmp_path / "project", check=True)
    script = run("explain", "whole-model-save-load", "--script", cwd=tmp_path)
    assert script.returncode == 0
    (tmp_path / "convert.py").write_bytes(script.stdout)
    return tmp_path


def convert(folder, *arguments):
    return subprocess.run([sys.executable, "convert.py", *arguments], cwd=folder, capture_output=True, check=False, text=True)


def test_the_script_converts_a_pickled_model(old_checkpoint):
    result = convert(old_checkpoint, "old.pt", "new.pt", "--path", "project")
    assert result.returncode == 0
    assert "2 tensors of a Net" in result.stdout
    assert "labels" in result.stdout
    check = "import torch; print(sorted(torch.load('new.pt', weights_only=True)))"
    loaded = subprocess.run([sys.executable, "-c", check], cwd=old_checkpoint, capture_output=True, check=True, text=True)
    assert loaded.stdout == "['fc.bias', 'fc.weight']\n"


@pytest.mark.parametrize(
    ("made", "key"), [("torch.nn.DataParallel(net.Net())", "fc.weight"), ("torch.nn.ModuleDict({'module': net.Net()})", "module.fc.weight")]
)
def test_the_script_takes_off_wrappers_alone(old_checkpoint, made, key):
    code = f"import net, torch; torch.save({made}, '../old.pt')"
    subprocess.run([sys.executable, "-c", code], cwd=old_checkpoint / "project", check=True)
    assert convert(old_checkpoint, "old.pt", "new.pt", "--path", "project").returncode == 0
    check = f"import torch; assert {key!r} in torch.load('new.pt', weights_only=True)"
    subprocess.run([sys.executable, "-c", check], cwd=old_checkpoint, check=True)


def test_the_script_overwrites_nothing_and_names_what_is_missing(old_checkpoint):
    (old_checkpoint / "new.pt").touch()
    assert "exists already" in convert(old_checkpoint, "old.pt", "new.pt", "--path", "project").stderr
    missing = convert(old_checkpoint, "old.pt", "other.pt")
    assert "name its folder with --path" in missing.stderr
    assert not (old_checkpoint / "other.pt").exists()


def test_a_rule_without_a_script(tmp_path):
    result = run("explain", "double-sigmoid", "--script", cwd=tmp_path)
    assert result.returncode == 2
    assert "whole-model-save-load" in result.stderr.decode()
