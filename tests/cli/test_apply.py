"""`apply`: in place, whole, and nothing lost."""

from __future__ import annotations

import os

from .commands import AFTER, BEFORE, REPORT, UNSAFE, run


def test_fixes_in_place_and_sums_up(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    (tmp_path / "b.py").write_text(UNSAFE)
    (tmp_path / "c.py").write_text(REPORT)
    result = run("apply", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text() == AFTER
    assert (tmp_path / "b.py").read_text() == UNSAFE
    lines = result.stdout.decode().splitlines()
    assert result.returncode == 1
    assert [line.split() for line in lines[:3]] == [
        ["rule", "fixed", "left", "files"],
        ["scalar-index-to-item", "1", "0", "1"],
        ["torch-load-map-location", "0", "2", "2"],
    ]
    assert lines[-1] == "1 more fix is unsafe: see it with --unsafe-fixes"


def test_twice_changes_nothing(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    assert run("apply", cwd=tmp_path).returncode == 0
    before = os.stat(tmp_path / "a.py").st_mtime_ns
    result = run("apply", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"Nothing to fix.\n")
    assert os.stat(tmp_path / "a.py").st_mtime_ns == before


def test_stdin_to_stdout(tmp_path):
    result = run("apply", "-", cwd=tmp_path, stdin=BEFORE.encode())
    assert (result.returncode, result.stdout.decode()) == (0, AFTER)


def test_a_file_that_cannot_be_written_is_told_and_the_rest_done(tmp_path):
    (tmp_path / "a.py").write_text(BEFORE)
    os.link(tmp_path / "a.py", tmp_path / "twin.txt")
    (tmp_path / "b.py").write_text(BEFORE)
    result = run("apply", cwd=tmp_path)
    assert result.returncode == 3
    assert "a.py:1: not analysed: has hard links" in result.stderr.decode()
    assert (tmp_path / "a.py").read_text() == BEFORE
    assert (tmp_path / "b.py").read_text() == AFTER
