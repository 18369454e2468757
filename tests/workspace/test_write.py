"""A file is replaced whole, or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from torchfix_codemods.workspace.write import NotWritten, obstacle, write, write_together


def test_mode_is_kept_and_nothing_is_left_behind(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o755)
    write(str(path), b"old", b"new", str(tmp_path))
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert os.listdir(tmp_path) == ["a.py"]


def refused(path, root, match):
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    with pytest.raises(NotWritten, match=match):
        write(str(path), b"old", b"new", str(root))
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before


def test_a_file_that_changed_meanwhile(tmp_path):
    (tmp_path / "a.py").write_bytes(b"newer")
    refused(tmp_path / "a.py", tmp_path, "changed while")


def test_hard_links(tmp_path):
    (tmp_path / "a.py").write_bytes(b"old")
    os.link(tmp_path / "a.py", tmp_path / "b.py")
    refused(tmp_path / "a.py", tmp_path, "hard links")


def test_read_only(tmp_path):
    (tmp_path / "a.py").write_bytes(b"old")
    (tmp_path / "a.py").chmod(0o444)
    refused(tmp_path / "a.py", tmp_path, "read-only")


def test_a_link_inside_stays_a_link(tmp_path):
    (tmp_path / "real.py").write_bytes(b"old")
    (tmp_path / "link.py").symlink_to("real.py")
    write(str(tmp_path / "link.py"), b"old", b"new", str(tmp_path))
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"new"


def test_a_link_to_outside(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "outside.py").write_bytes(b"old")
    (tmp_path / "root/link.py").symlink_to(tmp_path / "outside.py")
    refused(tmp_path / "root/link.py", tmp_path / "root", "outside the folder")
    assert (tmp_path / "outside.py").read_bytes() == b"old"


def test_a_file_that_vanished(tmp_path):
    refused(tmp_path / "gone.py", tmp_path, "can't be read again")


def test_several_files_together(tmp_path):
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path in paths:
        path.write_bytes(b"old")
    write_together([(str(path), b"old", b"new") for path in paths], str(tmp_path))
    assert {path.read_bytes() for path in paths} == {b"new"}
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py", "c.py"]


@pytest.mark.parametrize("last", ["changed", "linked", "gone"])
def test_if_one_cannot_be_written_none_is(tmp_path, last):
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path in paths:
        path.write_bytes(b"old")
    if last == "changed":
        paths[2].write_bytes(b"newer")
    elif last == "linked":
        os.link(paths[2], tmp_path / "d")
    else:
        paths[2].unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(NotWritten, match=r"c\.py: "):
        write_together([(str(path), b"old", b"new") for path in paths], str(tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_stands_in_the_way_is_told(tmp_path):
    (tmp_path / "a.py").write_bytes(b"old")
    assert obstacle(str(tmp_path / "a.py"), str(tmp_path)) == ""
    (tmp_path / "a.py").chmod(0o444)
    assert obstacle(str(tmp_path / "a.py"), str(tmp_path)) == "is read-only"
