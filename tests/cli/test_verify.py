"""`verify`: which Python executes, what is kept of it, and what is said when it can't be done."""

from __future__ import annotations

import sys

import pytest
import torch

from torchfix_codemods.recorded import loads

from ..verify import bare
from .commands import run


def test_another_python_executes(tmp_path):
    python = bare.make(tmp_path / "other")
    record = tmp_path / "record.json"
    result = run("verify", "nn-init-data-arg", "--device", "cpu", "--python", str(python), "--record", str(record), cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    version = sys.version.split()[0]
    assert result.stdout.decode().splitlines()[-1].endswith(f" 0 broken, 0 not verified: torch {torch.__version__} on Python {version}.")
    entries = loads(record.read_text())
    assert {(entry.rule, entry.name, entry.torch, entry.python, entry.verdict) for entry in entries} == {
        ("nn-init-data-arg", "CPU", torch.__version__, version, "holds")
    }


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--python", "no-such-python"], "error: no-such-python: no such program"),
        (["--python", "/bin/ls"], "error: /bin/ls: can't execute cases: it doesn't behave like a Python"),
        (["--record", "no/such/folder.json"], "error: no/such/folder.json: can't be read as a record"),
    ],
)
def test_what_can_not_be_done_is_told(tmp_path, option, says):
    result = run("verify", "nn-init-data-arg", *option, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().startswith(says)
    assert b"Traceback" not in result.stderr


def test_a_gpu_that_is_asked_for_and_absent_is_told(tmp_path):
    absent = {"CUDA_VISIBLE_DEVICES": ""}.items()
    result = run("verify", "nn-init-data-arg", "--device", "cuda", cwd=tmp_path, environment=absent)
    assert result.returncode == 2
    assert result.stdout.decode().count("not verified\n") == 4
    assert result.stderr.decode().startswith(f"No GPU is here that torch {torch.__version__}")
    assert run("verify", "nn-init-data-arg", cwd=tmp_path, environment=absent).returncode == 0
