"""The private copy is what the project is, before each trial."""

from __future__ import annotations

import os
import shutil
import socket
import stat

import pytest

from torchfix_codemods.sandbox.copy import Copy
from torchfix_codemods.sandbox.project import NotCopied, entries, top
from torchfix_codemods.sandbox.sizes import check_size


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    for path, text in {
        "pyproject.toml": "",
        "train.py": "print(1)\n",
        "pkg/__init__.py": "",
        "pkg/model.py": "x = 1\n",
        "data/weights.bin": "w" * 1000,
        ".gitignore": "data/\n",
        ".git/HEAD": "ref: refs/heads/main\n",
        "pkg/__pycache__/model.pyc": "",
        ".venv/pyvenv.cfg": "",
        ".venv/lib/big.so": "b" * 100_000,
        "node_modules/left-pad/index.js": "",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "empty").mkdir()
    (folder / "train.py").chmod(0o755)
    return folder


def copied(project, tmp_path, links=()):
    return Copy(str(project), str(tmp_path / "copy/project"), list(entries(str(project), [str(link) for link in links])))


def tree(folder):
    """All that is below a folder: modes and bytes of files, targets of links."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = os.path.join(root, name)
            key = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[key] = os.readlink(path)
            elif os.path.isdir(path):
                found[key] = "folder"
            else:
                with open(path, "rb") as file:
                    found[key] = (stat.S_IMODE(os.stat(path).st_mode), file.read())
    return found


def test_what_is_copied_and_what_is_linked(project, tmp_path):
    copy = copied(project, tmp_path)
    copy.reset({})
    seen = tree(copy.folder)
    assert set(seen) == {
        ".gitignore",
        ".venv",
        "data",
        "data/weights.bin",
        "empty",
        "node_modules",
        "pkg",
        "pkg/__init__.py",
        "pkg/model.py",
        "pyproject.toml",
        "train.py",
    }
    assert seen["train.py"] == (0o755, b"print(1)\n")
    assert seen[".venv"] == str(project / ".venv")
    assert seen["node_modules"] == str(project / "node_modules")
    assert os.stat(project / "train.py").st_mtime_ns == os.stat(os.path.join(copy.folder, "train.py")).st_mtime_ns


def _write(folder):
    (folder / "train.py").write_text("print(2)\n")


def _same_size_and_time(folder):
    before = os.stat(folder / "pkg/model.py")
    (folder / "pkg/model.py").write_text("x = 2\n")
    os.utime(folder / "pkg/model.py", ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace_by_folder(folder):
    (folder / "train.py").unlink()
    (folder / "train.py/inner").mkdir(parents=True)


def _replace_by_link(folder):
    shutil.rmtree(folder / "pkg")
    (folder / "pkg").symlink_to("data")


def _lock(folder):
    (folder / "data").chmod(0)
    (folder / "pkg/new").mkdir()
    (folder / "pkg/new/file").touch()
    (folder / "pkg/new").chmod(0)


def _create(folder):
    (folder / "runs/1").mkdir(parents=True)
    (folder / "runs/1/log").touch()
    os.mkfifo(folder / "fifo")
    (folder / "pkg/dangling").symlink_to("nowhere")


@pytest.mark.parametrize(
    "change",
    [
        _write,
        _same_size_and_time,
        _replace_by_folder,
        _replace_by_link,
        _lock,
        _create,
        lambda folder: (folder / "train.py").chmod(0o644),
        lambda folder: shutil.rmtree(folder / "data"),
        lambda folder: (folder / ".venv").unlink(),
        lambda folder: os.rename(folder / "train.py", folder / "moved.py"),
        lambda folder: (folder / "empty").rmdir(),
        shutil.rmtree,
    ],
)
def test_whatever_a_command_does_is_undone(project, tmp_path, change):
    original = tree(project)
    copy = copied(project, tmp_path)
    copy.reset({})
    pristine = tree(copy.folder)
    change(tmp_path / "copy/project")
    copy.reset({})
    assert tree(copy.folder) == pristine
    assert tree(project) == original


def test_replaced_files_keep_their_mode_and_come_back(project, tmp_path):
    copy = copied(project, tmp_path)
    copy.reset({"train.py": b"changed"})
    assert tree(copy.folder)["train.py"] == (0o755, b"changed")
    copy.reset({"pkg/model.py": b"other"})
    seen = tree(copy.folder)
    assert seen["train.py"] == (0o755, b"print(1)\n")
    assert seen["pkg/model.py"][1] == b"other"
    assert (project / "pkg/model.py").read_text() == "x = 1\n"


def test_files_that_nothing_touched_are_not_copied_again(project, tmp_path):
    copy = copied(project, tmp_path)
    copy.reset({})
    before = os.stat(os.path.join(copy.folder, "data/weights.bin")).st_ino
    (tmp_path / "copy/project/train.py").write_text("changed")
    copy.reset({})
    assert os.stat(os.path.join(copy.folder, "data/weights.bin")).st_ino == before


def test_links_inside_lead_into_the_copy_and_others_stay(project, tmp_path):
    (tmp_path / "outside").mkdir()
    (project / "pkg/relative").symlink_to("../data/weights.bin")
    (project / "absolute").symlink_to(project / "data")
    (project / "around").symlink_to(f"../{project.name}/train.py")
    (project / "chain").symlink_to("absolute")
    (project / "out").symlink_to("../outside")
    copy = copied(project, tmp_path)
    copy.reset({})
    real = {name: os.path.realpath(os.path.join(copy.folder, name)) for name in ("pkg/relative", "absolute", "around", "chain", "out")}
    assert real == {
        "pkg/relative": f"{copy.folder}/data/weights.bin",
        "absolute": f"{copy.folder}/data",
        "around": f"{copy.folder}/train.py",
        "chain": f"{copy.folder}/data",
        "out": str(tmp_path / "outside"),
    }


def test_special_files_are_left_out(project):
    os.mkfifo(project / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(project / "socket"))
        names = {entry.path for entry in entries(str(project))}
    assert not names & {"fifo", "socket"}


def test_linked_folders_are_shared_and_their_files_are_not_replaced(project, tmp_path):
    copy = copied(project, tmp_path, [project / "data", project / "pkg/model.py"])
    copy.reset({})
    (tmp_path / "copy/project/data/new").touch()
    assert (project / "data/new").exists()
    for name in ("pkg/model.py", "data/weights.bin"):
        with pytest.raises(NotCopied, match=f"{name} is to be changed, and isn't part of the private copy"):
            copy.reset({name: b""})
    assert (project / "pkg/model.py").read_text() == "x = 1\n"


def test_a_project_that_changes_meanwhile_is_not_mixed_with_what_was_copied(project, tmp_path):
    copy = copied(project, tmp_path)
    copy.reset({})
    (project / "train.py").write_text("print(3)\n")
    (tmp_path / "copy/project/pkg/model.py").unlink()
    copy.reset({})
    assert tree(copy.folder)["train.py"][1] == b"print(1)\n"
    (tmp_path / "copy/project/train.py").unlink()
    with pytest.raises(NotCopied, match=r"train\.py changed while it was in use"):
        copy.reset({})


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_told(project):
    (project / "data").chmod(0)
    try:
        with pytest.raises(NotCopied, match=r"data can't be read .* --link"):
            list(entries(str(project)))
    finally:
        (project / "data").chmod(0o755)


def test_what_makes_a_project_too_large_is_told(project, tmp_path):
    (project / "data/images/raw").mkdir(parents=True)
    (project / "data/images/raw/1.bin").write_bytes(b"i" * 50_000)
    found = list(entries(str(project)))
    with pytest.raises(NotCopied) as refusal:
        check_size(str(project), found, 20_000, str(tmp_path))
    assert f"the largest: {project}/data/images/raw/1.bin (0.1 MB)" in str(refusal.value)
    assert "--copy-limit" in str(refusal.value)
    check_size(str(project), found, 60_000, str(tmp_path))


def test_the_top_of_a_project(tmp_path, project):
    model = str(project / "pkg/model.py")
    assert top([model], "/") == str(project)
    assert top([model], str(project / "pkg")) == str(project)
    (tmp_path / "bare/sub").mkdir(parents=True)
    (tmp_path / "bare/a.py").touch()
    (tmp_path / "bare/sub/b.py").touch()
    assert top([str(tmp_path / "bare/a.py"), str(tmp_path / "bare/sub/b.py")], "/") == str(tmp_path / "bare")
    other = tmp_path / "other"
    other.mkdir()
    (other / "setup.py").touch()
    assert top([model, str(other)], "/") == str(tmp_path)


def test_the_top_is_that_of_the_project_around_the_current_folder(tmp_path, project):
    (tmp_path / ".git").mkdir()
    (project / ".git").rename(tmp_path / "gone")
    model = str(project / "pkg/model.py")
    assert top([model], str(tmp_path)) == str(tmp_path)
    assert top([model], str(project)) == str(project)
