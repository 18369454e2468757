"""Killed at any moment, `apply --verify-with` leaves the files as they were, and no process."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys

import pytest

from tests.packs import WRONG_RULES, with_pack
from tests.sandbox.processes import appeared, gone

SCRIPT = """import torch


def fit(model, optimizer, batches):
    for x in batches:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        print(loss.data[0])
"""
CHECK = """
import os, subprocess, sys
folder = sys.argv[1]
count = len(os.listdir(folder))
text = open("train_0.py").read()
open("left behind", "w").close()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", folder], start_new_session=count % 2 == 0)
open(f"{folder}/{count}", "w").close()
if count == int(sys.argv[2]):
    child.wait()
child.kill()
sys.exit("step()" not in text)
"""
"""Fails where a step is missing; its run of the given number (from 0) waits for a child that sleeps."""
RULES = "scalar-index-to-item,drop-optimizer-step"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("runs", "tmp"):
        (tmp_path / name).mkdir()
    (folder / "setup.py").touch()
    (folder / "check.py").write_text(CHECK)
    for i in range(4):
        (folder / f"train_{i}.py").write_text(SCRIPT)
    return folder


def started(project, stops_at):
    """The command line, running; its run of a number hangs."""
    runs = project.parent / "runs"
    command = shlex.join([sys.executable, "check.py", str(runs), str(stops_at)])
    arguments = ["apply", "--unsafe-fixes", "--select", RULES, "--verify-with", command, "."]
    return subprocess.Popen(
        [sys.executable, "-m", "torchfix_codemods", *arguments],
        cwd=project,
        env={**os.environ, **with_pack(WRONG_RULES), "TMPDIR": str(project.parent / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def left_alone(project, before, number):
    assert contents(project) == before
    assert gone(str(project.parent))
    if number != signal.SIGKILL:
        assert os.listdir(project.parent / "tmp") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("run", [0, 1, 2, 4])
def test_killed_during_a_run(project, number, run):
    before = contents(project)
    process = started(project, run)
    assert appeared(project.parent / "runs" / str(run))
    process.send_signal(number)
    assert process.wait() == (-number if number == signal.SIGKILL else 130)
    left_alone(project, before, number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_a_random_moment(project, number, seed):
    chance = random.Random(f"{seed}{number}")
    before = contents(project)
    process = started(project, 99)
    try:
        process.wait(chance.uniform(0.1, 2.5))
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    process.wait()
    if b".item()" in (project / "train_0.py").read_bytes():
        assert all(b".item()" in (project / f"train_{i}.py").read_bytes() for i in range(4))
        before = contents(project)
    left_alone(project, before, number)


def test_not_killed_it_applies_what_passes(project):
    assert started(project, 99).wait() == 1
    assert (project / "train_0.py").read_text() == SCRIPT.replace(".data[0]", ".item()")
    assert "left behind" not in os.listdir(project)
    assert os.listdir(project.parent / "tmp") == []
    assert gone(str(project.parent))
