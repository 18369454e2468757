"""Trials of a project: the same place each time, and nothing left at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from torchfix_codemods.sandbox import NotCopied, Options, opened

from .processes import appeared, gone


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "setup.py").touch()
    (folder / "a.txt").write_text("original")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(folder / "sub")
    return folder


def test_each_trial_starts_from_the_same_state_at_the_same_place(project):
    command = "pwd; cat ../a.txt; ls .. $TMPDIR; echo changed > ../a.txt; touch ../made $TMPDIR/made"
    with opened([".."], Options()) as sandbox:
        first = sandbox.trial(command, {})
        second = sandbox.trial(command, {})
        assert sandbox.trial("cat a.txt ../a.txt", {"a.txt": b"replaced"}).stdout.text == "replaced"
    assert first.stdout.text.splitlines()[0].endswith("/project/sub")
    assert first.stdout.text.splitlines()[1].startswith("original")
    assert first.stdout == second.stdout
    assert (project / "a.txt").read_text() == "original"
    assert sorted(os.listdir(project)) == ["a.txt", "setup.py", "sub"]


@pytest.mark.usefixtures("project")
def test_nothing_is_left(tmp_path):
    with opened(["."], Options()) as sandbox:
        sandbox.trial("mkdir locked; touch locked/file; chmod 000 locked", {})
        assert len(os.listdir(tmp_path / "tmp")) == 1
    assert os.listdir(tmp_path / "tmp") == []


def test_a_command_that_names_the_project_works_in_the_copy(project):
    with opened(["."], Options()) as sandbox:
        outcome = sandbox.trial(f"cat {project}/a.txt; echo {project}-other /other{project}/a.txt; echo {project}", {"a.txt": b"replaced "})
    text = outcome.stdout.text
    assert text.startswith("replaced ")
    assert f"{project}-other /other{project}/a.txt" in text
    assert not text.splitlines()[-1].startswith(str(project))


@pytest.mark.usefixtures("project")
def test_variables_are_scrubbed(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("WANTED", "seen")
    with opened(["."], Options(env=("WANTED", "GIVEN=1"))) as sandbox:
        outcome = sandbox.trial("env", {})
    assert "secret" not in outcome.stdout.text
    assert {"WANTED=seen", "GIVEN=1"} <= set(outcome.stdout.text.splitlines())


def test_what_cannot_be_copied_is_told(project, tmp_path):
    (project / "big").write_bytes(b"0" * 10_000)
    with pytest.raises(NotCopied, match=r"big \(0\.0 MB\)"), opened(["."], Options(copy_limit=5_000)):
        pass
    with pytest.raises(NotCopied, match="--link nowhere: no such file"), opened(["."], Options(links=("nowhere",))):
        pass
    with opened(["."], Options(copy_limit=5_000, links=(str(project / "big"),))) as sandbox:
        assert sandbox.trial("wc -c < ../big", {}).stdout.text.strip() == "10000"
    assert os.listdir(tmp_path / "tmp") == []


CALLER = """
import sys
from torchfix_codemods.sandbox import Options, opened
with opened([sys.argv[1]], Options()) as sandbox:
    sandbox.trial(sys.argv[2], {})
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_leaves_nothing(project, tmp_path, number):
    started = tmp_path / "started"
    sleeper = f'{sys.executable} -c \'import time; open("{started}", "w"); time.sleep(600)  # {tmp_path}\''
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(project), sleeper], stderr=subprocess.PIPE, env=environment)
    assert appeared(started)
    caller.send_signal(number)
    assert b"KeyboardInterrupt" in caller.communicate()[1]
    assert os.listdir(tmp_path / "tmp") == []
    assert gone(str(tmp_path))
