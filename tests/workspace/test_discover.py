"""Which files are looked at."""

from __future__ import annotations

import os

import pytest

from tests.cli.commands import git
from torchfix_codemods.workspace.discover import MissingPath, discover


def make(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


def relative(root, paths):
    return [os.path.relpath(path, root) for path in paths]


def test_git_decides_in_a_repository(tmp_path):
    git("init", "-q", cwd=tmp_path)
    make(tmp_path, "a.py", "new/b.py", "build/c.py", "d.txt")
    (tmp_path / ".gitignore").write_text("build/\n")
    git("add", "a.py", cwd=tmp_path)
    assert relative(tmp_path, discover([str(tmp_path)])) == ["a.py", "new/b.py"]


def test_gitignore_is_honoured_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    make(tmp_path, "a.py", "build/b.py", "sub/c.py", "sub/skip_me.py", "sub/deep/d.py", ".git_not/e.py", "env/lib/f.py")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "sub/.gitignore").write_text("skip_*.py\n")
    (tmp_path / "env/pyvenv.cfg").write_text("")
    assert relative(tmp_path, discover([str(tmp_path)])) == [".git_not/e.py", "a.py", "sub/c.py", "sub/deep/d.py"]


def test_named_files_are_always_taken(tmp_path):
    git("init", "-q", cwd=tmp_path)
    make(tmp_path, "build/c.py", "script")
    (tmp_path / ".gitignore").write_text("build/\n")
    named = [str(tmp_path / "script"), str(tmp_path / "build/c.py"), str(tmp_path / "build/c.py")]
    assert relative(tmp_path, discover(named)) == ["build/c.py", "script"]


def test_missing_path(tmp_path):
    with pytest.raises(MissingPath, match="nowhere"):
        discover([str(tmp_path / "nowhere")])


def test_symlink_loops_end(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    make(tmp_path, "a/b.py")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    assert relative(tmp_path, discover([str(tmp_path)])) == ["a/b.py"]
