"""`diff`: what git accepts, byte for byte."""

from __future__ import annotations

import pytest

from .commands import AFTER, BEFORE, REPORT, UNSAFE, git, run

FILES = {
    "plain.py": BEFORE.encode(),
    "folder/crlf.py": BEFORE.replace("\n", "\r\n").encode(),
    "no_newline.py": BEFORE.rstrip("\n").encode(),
    "latin.py": ("# -*- coding: latin-1 -*-\n# été\n" + BEFORE).encode("latin-1"),
    "bom.py": b"\xef\xbb\xbf" + BEFORE.encode(),
    "spaced name.py": BEFORE.encode(),
    "ünïcode.py": BEFORE.encode(),
}


@pytest.fixture
def repository(tmp_path):
    git("init", "-q", cwd=tmp_path)
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    git("add", ".", cwd=tmp_path)
    git("commit", "-q", "-m", "start", cwd=tmp_path)
    return tmp_path


def test_git_applies_the_diff(repository):
    result = run("diff", cwd=repository)
    assert result.returncode == 1
    (repository.parent / "changes.patch").write_bytes(result.stdout)
    git("apply", "--whitespace=nowarn", str(repository.parent / "changes.patch"), cwd=repository)
    applied = {name: (repository / name).read_bytes() for name in FILES}
    assert applied == {name: data.replace(b"loss.data[0]", b"loss.item()") for name, data in FILES.items()}


def test_from_a_folder_inside(repository):
    result = run("diff", ".", cwd=repository / "folder")
    assert result.stdout.startswith(b"--- a/folder/crlf.py\n+++ b/folder/crlf.py\n")


def test_diff_equals_apply(repository):
    patch = run("diff", "--unsafe-fixes", cwd=repository).stdout
    run("apply", "--unsafe-fixes", cwd=repository)
    by_apply = {name: (repository / name).read_bytes() for name in FILES}
    git("checkout", "-q", ".", cwd=repository)
    (repository.parent / "changes.patch").write_bytes(patch)
    git("apply", "--whitespace=nowarn", str(repository.parent / "changes.patch"), cwd=repository)
    assert {name: (repository / name).read_bytes() for name in FILES} == by_apply


def test_findings_without_a_fix_go_to_stderr(tmp_path):
    (tmp_path / "a.py").write_text(REPORT)
    (tmp_path / "b.py").write_text(UNSAFE)
    result = run("diff", cwd=tmp_path)
    assert result.stdout == b""
    assert result.returncode == 1
    told = result.stderr.decode().splitlines()
    assert told[0].startswith("a.py:5:12: torch-load-map-location")
    assert told[-1] == "1 more fix is unsafe: see it with --unsafe-fixes"


def test_nothing_to_do(tmp_path):
    (tmp_path / "a.py").write_text(AFTER)
    result = run("diff", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_stdin(tmp_path):
    result = run("diff", "-", "--stdin-filename", "a.py", cwd=tmp_path, stdin=BEFORE.encode())
    assert result.stdout.decode().splitlines()[:2] == ["--- a/a.py", "+++ b/a.py"]
    assert b"+print(loss.item())" in result.stdout


def test_colors_on_demand(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    assert b"\033[" in run("diff", "--color", "always", cwd=tmp_path).stdout
