"""Another Python executes cases: it needs torch, and nothing of ours."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from torchfix_codemods.verify.case import Case
from torchfix_codemods.verify.contract import Contract
from torchfix_codemods.verify.interpreter import Interpreter, InterpreterError

from . import bare

HARNESS = "def observe(program, device):\n    return program.load().run(device)\n"


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return bare.make(tmp_path_factory.mktemp("other"))


@pytest.fixture
def interpreter(other):
    started = Interpreter(str(other))
    yield started
    started.close()


@pytest.fixture
def observe(tmp_path, interpreter):
    """What a text gives as one side of a case."""

    def run(code, case="any"):
        (tmp_path / "harness.py").write_text(HARNESS)
        (tmp_path / "code.py").write_text(code)
        shown = Case("some-rule", case, tmp_path / "harness.py", tmp_path / "code.py", contract=Contract({}))
        return interpreter.observe(shown, tmp_path / "code.py", "cpu")

    return run


@pytest.mark.parametrize("name", ["torchfix_codemods", "libcst", "typer"])
def test_it_has_nothing_of_ours(other, tmp_path, name):
    result = subprocess.run([other, "-c", f"import {name}"], capture_output=True, check=False, cwd=tmp_path)
    assert f"No module named '{name}'" in result.stderr.decode()


def test_it_says_what_it_is(interpreter):
    assert (interpreter.versions.python, interpreter.versions.torch) == (sys.version.split()[0], torch.__version__)
    assert interpreter.device_name("cpu") == "CPU"


def test_it_executes_with_the_probes_at_hand(observe, other):
    seen = observe("import sys\nfrom torchfix_codemods.verify import probes\ndef run(device):\n    return {'prefix': sys.prefix}")
    assert seen.observations == {"raises": "nothing", "prefix": str(other.parents[1])}


def test_what_the_code_prints_and_reads_stays_out_of_the_conversation(observe):
    seen = observe(
        "import os, sys\ndef run(device):\n    os.write(1, b'{}')\n    return {'read': os.read(0, 1).decode(), 'line': sys.stdin.read()}"
    )
    assert seen.observations == {"raises": "nothing", "read": "", "line": ""}


def test_after_its_death_the_next_case_is_executed(observe, other):
    seen = observe("import os, signal\ndef run(device):\n    os.kill(os.getppid(), signal.SIGKILL)")
    assert seen.failure == f"{other} ended with status -9"
    assert observe("def run(device):\n    return {'x': 1}").observations == {"raises": "nothing", "x": 1}


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "no such program"),
        ("#!/bin/sh\necho hello\n", "it doesn't behave like a Python"),
        ("#!/bin/sh\necho what is this >&2; echo more >&2\nexit 3\n", "what is this"),
        ("#!/bin/sh\nexec {python} -S -E $1\n", "torch can't be imported there (No module named 'torch')"),
        ('#!/bin/sh\necho \'{{"error": "it is Python 3.8"}}\'\n', "it is Python 3.8"),
    ],
)
def test_what_can_not_execute_says_why(tmp_path, script, says):
    python = tmp_path / "python"
    if script:
        python.write_text(script.format(python=sys.executable))
        python.chmod(0o755)
    with pytest.raises(InterpreterError) as error:
        Interpreter(str(python))
    assert str(error.value).startswith(f"{python}: ")
    assert says in str(error.value)


def test_a_python_that_is_too_old_says_so(tmp_path):
    """No old Python is here: the program that a Python is given is told that it runs under one."""
    from torchfix_codemods.verify import interpreter

    old = "import sys\nsys.version_info = (3, 9, 1)\n" + interpreter._START
    said = subprocess.run([sys.executable, "-c", old], capture_output=True, check=True, cwd=tmp_path).stdout
    assert said == b'{"error": "it is Python 3.9, and 3.10 or newer is needed"}'
