"""Commands run under limits, and nothing of them is left."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import signal
import subprocess
import sys

import pytest

from torchfix_codemods.sandbox import Limits, run

from .processes import alive, appeared, gone

ENV = {"PATH": os.environ["PATH"]}
PYTHON = shlex.quote(sys.executable)


def python(code):
    return f"{PYTHON} -c {shlex.quote(code)}"


@pytest.fixture
def marker():
    """A text that only the processes of this test have in their command lines."""
    return f"marker-{secrets.token_hex(8)}"


def outcome(command, cwd, env=ENV, **limits):
    return run(command, str(cwd), env, Limits(**limits))


def test_what_it_prints_and_how_it_ends(tmp_path):
    result = outcome("echo out; echo err >&2; pwd; cat; exit 3", tmp_path)
    assert (result.returncode, result.passed, result.reason) == (3, False, "exit 3")
    assert result.stdout.text == f"out\n{tmp_path}\n"
    assert result.stderr.text == "err\n"
    assert result.log() == f"out\n{tmp_path}\nerr"


def test_success(tmp_path):
    result = outcome("true", tmp_path)
    assert (result.passed, result.reason, result.stdout.size) == (True, "exit 0", 0)


def test_only_the_given_variables_are_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    result = outcome("cat /proc/self/environ /proc/$PPID/environ", tmp_path, {**ENV, "SEEN": "yes"})
    assert b"SEEN=yes" in result.stdout.head
    assert b"secret" not in result.stdout.head


def test_a_timeout_ends_children_and_grandchildren(tmp_path, marker):
    sleeper = python(f"import time; time.sleep(600)  # {marker}")
    result = outcome(f"{sleeper} & ({sleeper} & {sleeper}) & {sleeper}", tmp_path, timeout=1)
    assert (result.timed_out, result.passed, result.reason) == (True, False, "timed out after 1 s")
    assert not alive(marker)


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)  # {marker}
    os._exit(0)
os.wait()
print("started")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux alone")
def test_what_left_the_group_is_ended_too(tmp_path, marker):
    result = outcome(python(DAEMON.format(marker=marker)), tmp_path)
    assert (result.returncode, result.stdout.text) == (0, "started\n")
    assert not alive(marker)


CALLER = """
import sys
from torchfix_codemods.sandbox import Limits, run
run(sys.argv[1], sys.argv[2], {"PATH": "/bin:/usr/bin"}, Limits())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_our_own_death_ends_it(tmp_path, marker, number):
    sleeper = python(f"import time; open('started', 'w'); time.sleep(600)  # {marker}")
    command = f"setsid {python(f'import time; time.sleep(600)  # {marker}')} & {sleeper}"
    caller = subprocess.Popen([sys.executable, "-c", CALLER, command, str(tmp_path)], stderr=subprocess.DEVNULL)
    assert appeared(tmp_path / "started")
    caller.send_signal(number)
    caller.wait()
    assert gone(marker)


def test_the_memory_limit_hits(tmp_path):
    code = "x = bytearray(600_000_000); print(len(x))"
    assert outcome(python(code), tmp_path, memory=2_000_000_000).stdout.text == "600000000\n"
    result = outcome(python(code), tmp_path, memory=300_000_000)
    assert (result.returncode, result.stderr.end(1)) == (1, "MemoryError")


def test_the_cpu_limit_hits(tmp_path):
    result = outcome(python("while True: pass"), tmp_path, cpu=1)
    assert (result.passed, result.reason) == (False, "killed by SIGXCPU (the CPU limit)")


@pytest.mark.parametrize(
    ("command", "reason"),
    [("kill -KILL $$", "killed by SIGKILL (out of memory?)"), ("sh -c 'kill -ABRT $$'; exit $?", "killed by SIGABRT")],
)
def test_signals_have_names(tmp_path, command, reason):
    assert outcome(command, tmp_path).reason == reason


def test_much_output_on_both_streams_is_bounded_and_blocks_nothing(tmp_path):
    code = "import sys\nfor i in range(50):\n sys.stdout.write(chr(65 + i % 26) * 10**6)\n sys.stderr.write('e' * 10**6)"
    result = outcome(python(code), tmp_path, output=1001)
    whole = b"".join(bytes([65 + i % 26]) * 10**6 for i in range(50))
    assert result.stdout.head == b"A" * 501
    assert result.stdout.tail == b"X" * 500
    assert (result.stdout.size, result.stdout.dropped) == (50_000_000, 50_000_000 - 1001)
    assert result.stdout.digest == hashlib.sha256(whole).hexdigest()
    assert result.stderr.size == 50_000_000
    assert "49,998,999 bytes left out" in result.stdout.text


def test_a_shell_that_is_missing_its_folder_is_told(tmp_path):
    with pytest.raises(OSError, match="gone"):
        outcome("true", tmp_path / "gone")
