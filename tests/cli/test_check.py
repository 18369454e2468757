"""`check`: findings, exit codes, options, and the light path."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .commands import AFTER, BEFORE, REPORT, UNSAFE, run


def test_finding_with_its_line(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    result = run("check", "a.py", cwd=tmp_path)
    lines = result.stdout.decode().splitlines()
    assert result.returncode == 1
    assert lines[0] == "a.py:5:7: scalar-index-to-item `loss` has no dimension to index: use `loss.item()` [safe fix]"
    assert lines[1:3] == ["    print(loss.data[0])", "          ^^^^^^^^^^^^"]
    assert lines[3] == "1 finding in 1 file; 1 can be fixed with `apply`."
    assert result.stderr == b""


def test_clean(tmp_path):
    (tmp_path / "a.py").write_text(AFTER)
    result = run("check", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"No findings in 1 file.\n")


def test_check_never_writes(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    run("check", "--unsafe-fixes", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text() == BEFORE
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_last_line_offers_unsafe_fixes(tmp_path):
    (tmp_path / "a.py").write_text(UNSAFE)
    (tmp_path / "b.py").write_text(REPORT)
    plain = run("check", cwd=tmp_path).stdout.decode().splitlines()
    assert plain[-1] == "1 more fix is unsafe: see it with --unsafe-fixes"
    assert plain[-2] == "2 findings in 2 files; 0 can be fixed with `apply`."
    assert (
        run("check", "--unsafe-fixes", cwd=tmp_path).stdout.decode().splitlines()[-1]
        == "2 findings in 2 files; 1 can be fixed with `apply`."
    )


def test_warnings_about_the_code_are_not_given(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE + "pattern = '\\.'\nsame = 1 is 1\n")
    result = run("diff", "a.py", cwd=tmp_path, environment={"PYTHONWARNINGS": "always"})
    assert b"+print(loss.item())" in result.stdout
    assert result.stderr == b""


def test_stdin(tmp_path):
    result = run("check", "-", "--stdin-filename", "made/up.py", cwd=tmp_path, stdin=BEFORE.encode())
    assert result.stdout.startswith(b"made/up.py:5:7: scalar-index-to-item")
    assert result.returncode == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--select", "scalar-index-to-item"], 1),
        (["--select", "scalars"], 1),
        (["--select", "ALL"], 1),
        (["--select=modes,scalars"], 1),
        (["--select", "modes"], 0),
        (["--ignore", "scalars"], 0),
        (["--select", "scalars", "--ignore", "scalar-index-to-item"], 0),
        (["--jobs", "1"], 1),
        (["-j", "2", "-q"], 1),
    ],
)
def test_options(tmp_path, options, expected):
    (tmp_path / "a.py").write_text(BEFORE)
    assert run("check", *options, "a.py", cwd=tmp_path).returncode == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "scalar-index"], "did you mean 'scalar-index-to-item'?"),
        (["--ignore", "zzz"], "`torchfix-codemods rules` lists them"),
        (["missing.py"], "missing.py: no such file or directory"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--jobs", "many"], "invalid int value: 'many'"),
        (["--jobs", "-1"], "--jobs takes a number of processes"),
        (["--color", "pink"], "--color takes auto, always, never"),
        (["-", "a.py"], "can't be combined"),
    ],
)
def test_mistakes(tmp_path, arguments, message):
    result = run("check", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr.decode()
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("two.py", b"import torch\nprint 'hello'\n", 2, "this is Python 2 code"),
        ("two_more.py", b"import torch\ntry:\n    pass\nexcept E, e:\n    pass\n", 4, "this is Python 2 code"),
        ("async.py", b"import torch\nx.cuda(async=True)\n", 2, "non_blocking="),
        ("broken.py", b"import torch\ndef f(:\n    pass\n", 2, "fix the syntax"),
        ("bytes.py", b"import torch\nx = '\xff'\n", 2, "not valid utf-8"),
        ("null.py", b"import torch\n\x00\n", 1, "null"),
        ("deep.py", b"import torch\nx = " + b"(" * 5000 + b")" * 5000 + b"\n", 2, ""),
    ],
)
def test_files_that_cannot_be_parsed_are_told_and_left(tmp_path, name, text, line, reason):
    (tmp_path / name).write_bytes(text)
    (tmp_path / "good.py").write_text(BEFORE)
    for command in ("check", "diff", "apply"):
        result = run(command, cwd=tmp_path)
        told = result.stderr.decode()
        assert f"{name}:{line}: not analysed: " in told
        assert reason in told
        assert "Traceback" not in told
        assert result.returncode == 1
    assert (tmp_path / name).read_bytes() == text
    assert (tmp_path / "good.py").read_text() == AFTER


def test_the_same_whatever_the_number_of_jobs(tmp_path):
    for number in range(150):
        (tmp_path / f"m{number:03}.py").write_text(BEFORE if number % 3 else UNSAFE)
    one, two = run("check", "--jobs", "1", cwd=tmp_path), run("check", "--jobs", "2", cwd=tmp_path)
    assert one.stdout == two.stdout
    assert one.stdout.count(b"scalar-index-to-item") == 100


def test_colors(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    assert b"\033[" in run("check", "--color", "always", cwd=tmp_path).stdout
    assert b"\033[" not in run("check", cwd=tmp_path).stdout


def test_no_rule_is_loaded_where_nothing_mentions_torch(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    code = (
        "import sys\nfrom torchfix_codemods.cli.entry import run\nassert run(['check', 'a.py']) == 0\n"
        "print([m for m in sys.modules if m.startswith(('torchfix_codemods.transforms', 'torchfix_codemods.model'))])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert result.stdout.decode().splitlines() == ["No findings in 1 file.", "[]"]


def test_nothing_heavy_is_loaded(tmp_path):
    (tmp_path / "a.py").write_text(AFTER)
    code = (
        "import sys\nfrom torchfix_codemods.cli.entry import run\nassert run(['check', 'a.py']) == 0\n"
        "print([m for m in ('torch', 'typer', 'rich', 'libcst', 'click', 'pathspec', 'importlib.metadata') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert result.stdout.decode().splitlines()[-1] == "[]"
