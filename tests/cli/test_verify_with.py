"""`apply --verify-with`: the rest is applied, and what is to blame is named."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from tests.packs import WRONG_RULES, with_pack

from .commands import run

TRAIN = """import torch


def fit(model, optimizer, batches):
    total = 0.0
    for x in batches:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.data[0]
    return total


def load(path):
    checkpoint = torch.load(path)
    return checkpoint["epoch"]
"""
RULES = "scalar-index-to-item,torch-load-map-location,drop-optimizer-step,return-early"
CHECK = f"{sys.executable} check.py"
"""A command of the user: `check.py` in the current folder."""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a script to fix, and a check that fails where a step is missing, or a function returns early."""
    folder, temporary = tmp_path / "project", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(TRAIN)
    write_check(folder, "assert 'step()' in text, 'nothing is learnt'; assert 'return None' not in text, 'nothing is returned'")
    yield folder
    assert os.listdir(temporary) == []


def write_check(folder, code):
    (folder / "check.py").write_text(f"import os, sys\ntext = open('train.py').read()\n{code}\n")


def apply(folder, *options, command=CHECK, rules=RULES):
    arguments = ["apply", "--unsafe-fixes", "--verify-with", command, "--select", rules, *options, "."]
    result = run(*arguments, cwd=folder, environment=with_pack(WRONG_RULES))
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def without_wrong_rules(text=TRAIN):
    return text.replace("loss.data[0]", "loss.item()").replace("torch.load(path)", 'torch.load(path, map_location="cpu")')


def test_wrong_rules_are_blamed_and_the_rest_is_applied(project):
    status, out, err = apply(project)
    lines = out.splitlines()
    assert (status, err) == (1, "")
    assert (project / "train.py").read_text() == without_wrong_rules()
    assert f"`{CHECK}` passes with 2 of 5 fixes" in out
    start = lines.index("It fails with each of these, which are left out:")
    assert [line.split()[:2] for line in lines[start + 2 : start + 5]] == [
        ["drop-optimizer-step", "train.py:9"],
        ["return-early", "train.py:5"],
        ["return-early", "train.py:15"],
    ]
    log = lines.index("train.py:9: drop-optimizer-step: exit 1")
    assert "    AssertionError: nothing is learnt" in lines[log + 1 :]


def test_all_good_fixes_cost_two_runs(project):
    status, out, _ = apply(project, rules="scalar-index-to-item,torch-load-map-location")
    assert status == 0
    assert f"`{CHECK}` passes with 2 of 2 fixes; 2 runs made." in out
    assert (project / "train.py").read_text() == without_wrong_rules()


def test_nothing_to_fix_runs_nothing(project):
    (project / "train.py").write_text("import torch\n")
    assert apply(project, command="touch ran; false")[:2] == (0, "Nothing to fix.\n")


def test_a_red_command_is_told_and_nothing_applied(project):
    write_check(project, "sys.exit('the data is missing')")
    status, out, err = apply(project)
    assert (status, out) == (2, "")
    assert "fails before anything is fixed (exit 1): nothing was applied" in err
    assert "    the data is missing" in err
    assert "--allow-red" in err
    assert (project / "train.py").read_text() == TRAIN


def test_a_red_command_may_stay_as_red_as_it_is(project):
    write_check(project, "sys.exit(3 if 'step()' in text else 4)")
    status, out, _ = apply(project, "--allow-red", rules="scalar-index-to-item,drop-optimizer-step")
    assert status == 1
    assert "train.py:9: drop-optimizer-step: exit 4" in out
    assert (project / "train.py").read_text() == TRAIN.replace("loss.data[0]", "loss.item()")


def test_a_command_that_becomes_green_passes_too(project):
    write_check(project, "sys.exit('.data[0]' in text)")
    assert apply(project, "--allow-red", rules="scalar-index-to-item")[0] == 0


FLAKY = """
count = int(open({path!r}).read())
open({path!r}, 'w').write(str(count + 1))
sys.exit(count in {failing})
"""


@pytest.mark.parametrize(
    ("failing", "status", "says"),
    [
        ([1], 0, "The command is flaky: with 1 of 1 fixes it passed and failed on the same files."),
        ([1, 3], 1, "train.py:10: scalar-index-to-item: exit 1"),
        ([0], 0, "The command is flaky: with no fixes it passed and failed on the same files."),
        ([0, 2], 2, "fails before anything is fixed (exit 1): nothing was applied; it passed once, and failed twice"),
    ],
)
def test_a_flaky_command_is_named_and_the_majority_decides(project, tmp_path, failing, status, says):
    (tmp_path / "count").write_text("0")
    write_check(project, FLAKY.format(path=str(tmp_path / "count"), failing=failing))
    result = apply(project, rules="scalar-index-to-item")
    assert result[0] == status
    assert says in result[1] + result[2]


def test_an_exhausted_budget_keeps_what_has_passed(project):
    names = [f"module_{i}" for i in range(8)]
    for name in names:
        (project / f"{name}.py").write_text(TRAIN)
    write_check(project, "sys.exit(any('step()' not in open(name).read() for name in os.listdir('.') if name.startswith('module')))")
    status, out, _ = apply(project, "--budget", "12", rules="scalar-index-to-item,drop-optimizer-step")
    assert status == 1
    assert "; 12 runs made." in out
    assert "Left out untried, since the 12 runs of --budget are made:" in out
    assert {(project / f"{name}.py").read_text() for name in names} == {TRAIN.replace("loss.data[0]", "loss.item()")}


def test_a_run_that_hangs_fails(project):
    write_check(project, "import time\ntime.sleep(0 if 'step()' in text else 600)")
    status, out, _ = apply(project, "--timeout", "2", rules="scalar-index-to-item,drop-optimizer-step")
    assert status == 1
    assert "drop-optimizer-step: timed out after 2 s" in out
    assert (project / "train.py").read_text() == TRAIN.replace("loss.data[0]", "loss.item()")


@pytest.mark.parametrize("allow", [[], ["--allow-red"]])
def test_a_command_that_hangs_from_the_start_is_told(project, allow):
    status, _, err = apply(project, "--timeout", "1", *allow, command="sleep 600")
    assert status == 2
    assert "(timed out after 1 s): nothing was applied; give it more time with --timeout" in err


def test_limits_and_variables_reach_the_command(project, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    write_check(
        project,
        "import resource\n"
        "assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 2_000_000_000\n"
        "assert resource.getrlimit(resource.RLIMIT_CPU)[0] == 50\n"
        "assert (os.environ['GIVEN'], os.environ.get('GITHUB_TOKEN')) == ('1', None)",
    )
    options = ["--memory-limit", "2G", "--cpu-limit", "50", "--env", "GIVEN=1"]
    status, out, err = apply(project, *options, rules="scalar-index-to-item")
    assert (status, err) == (0, ""), out


def test_a_project_too_large_is_told_and_a_link_helps(project):
    (project / "data").mkdir()
    (project / "data/images.bin").write_bytes(b"0" * 30_000)
    status, _, err = apply(project, "--copy-limit", "20K")
    assert status == 2
    assert f"the largest: {project}/data/images.bin" in err
    assert "nothing was applied" in err
    assert apply(project, "--copy-limit", "20K", "--link", "data", rules="scalar-index-to-item")[0] == 0


def test_a_file_that_cannot_be_written_is_told_and_the_rest_done(project):
    (project / "other.py").write_text(TRAIN)
    os.link(project / "other.py", project / "twin.txt")
    status, out, err = apply(project, rules="scalar-index-to-item")
    assert status == 3
    assert "other.py:1: not analysed: has hard links" in err
    assert "passes with 1 of 1 fix;" in out
    assert (project / "other.py").read_text() == TRAIN
    assert ".item()" in (project / "train.py").read_text()


def test_a_file_with_two_names_is_one_file(project):
    (project / "another.py").symlink_to("train.py")
    status, out, err = apply(project, rules="scalar-index-to-item,drop-optimizer-step")
    assert (status, err) == (1, "")
    assert "passes with 1 of 2 fixes;" in out
    assert (project / "another.py").is_symlink()
    assert (project / "train.py").read_text() == TRAIN.replace("loss.data[0]", "loss.item()")


def test_a_file_that_changes_meanwhile_keeps_all_from_being_written(project):
    (project / "a.py").write_text(TRAIN)
    write_check(project, f"open({str(project / 'train.py')!r}, 'a').write('# edited\\n')")
    status, _, err = apply(project, command=CHECK, rules="scalar-index-to-item")
    assert status == 3
    assert "nothing was written, since fixes were tried together: train.py: changed while" in err
    assert (project / "a.py").read_text() == TRAIN
    assert sorted(os.listdir(project)) == ["a.py", "check.py", "pyproject.toml", "train.py"]


def test_fixes_of_later_passes_are_shown_at_their_place_in_the_original(project):
    lines = ["import torch", "from torch import nn", "", "", "def load(path):", "    model = nn.Linear(2, 1)"]
    lines += ["    model.load_state_dict(torch.load(path))", "    return model", ""]
    (project / "train.py").write_text("\n".join(lines))
    write_check(project, "assert 'weights_only' not in text, 'no'")
    status, out, _ = apply(project, rules="return-early,torch-load-map-location,torch-load-weights-only")
    assert status == 1, out
    assert "train.py:7: torch-load-weights-only: exit 1" in out
    lines[5:7] = ["    return None", lines[5], '    model.load_state_dict(torch.load(path, map_location="cpu"))']
    assert (project / "train.py").read_text() == "\n".join(lines)


MODELS = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.fc = nn.Linear(n, 2)\n"
SAVE = "import torch\n\nfrom models import Net\n\nmodel = Net(3)\ntorch.save(model, 'net.pt')\n"
LOAD = "import torch\n\nimport models\n\nnet = torch.load('net.pt').eval()\nprint(net.fc.weight.shape)\n"


@pytest.mark.parametrize("broken", [True, False])
def test_fixes_that_span_files_are_one(project, broken):
    for name, text in {"models": MODELS, "train": SAVE, "serve": LOAD}.items():
        (project / f"{name}.py").write_text(text)
    write_check(
        project,
        "sys.exit('state_dict' in text)" if broken else "sys.exit(('state_dict' in text) != ('state_dict' in open('serve.py').read()))",
    )
    status, out, _ = apply(project, rules="whole-model-save-load")
    assert status == broken
    assert f"passes with {0 if broken else 1} of 1 fix;" in out
    assert ((project / "train.py").read_text() == SAVE) == broken
    assert ((project / "serve.py").read_text() == LOAD) == broken
    assert ("serve.py:5, train.py:6: whole-model-save-load: exit 1" in out) == broken


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--allow-red"], "--allow-red needs a command to run"),
        (["--verify-with", " "], "--verify-with needs a command to run"),
        (["--verify-with", "true", "--budget", "1"], "--budget takes at least 2, not 1"),
        (["--verify-with", "true", "--timeout", "0"], "--timeout takes at least 1, not 0"),
        (["--verify-with", "true", "--memory-limit", "many"], "--memory-limit takes a size such as 500M or 8G, not 'many'"),
        (["--verify-with", "true", "--env", "=1"], "--env: '=1' names no environment variable"),
        (["--verify-with", "true", "--link", "nowhere"], "--link nowhere: no such file or folder"),
        (["--verify-with", "true", "-"], "--verify-with needs files"),
    ],
)
def test_mistakes_are_told(project, options, says):
    result = run("apply", *options, cwd=project)
    assert result.returncode == 2
    assert says in result.stderr.decode()
    assert (project / "train.py").read_text() == TRAIN


def test_a_terminal_shows_each_run(project):
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "torchfix_codemods", "apply", "--unsafe-fixes", "--verify-with", CHECK, "--select", RULES, "."]
    with os.fdopen(ours, "rb", 0) as reader:
        process = subprocess.Popen(
            command, cwd=project, env={**os.environ, **with_pack(WRONG_RULES)}, stdout=subprocess.DEVNULL, stderr=terminal
        )
        os.close(terminal)
        shown = read_to_end(reader)
    assert process.wait() == 1
    lines = [re.sub(r"\d+\.\d s", "T", line) for line in shown.decode().splitlines()]
    assert lines[:3] == ["run 1: no fixes … passed, T", "run 2: 5 of 5 fixes … exit 1, T", "run 3: 5 of 5 fixes … exit 1, T"]


def read_to_end(reader):
    shown = b""
    while True:
        try:
            shown += reader.read(4096)
        except OSError:  # the terminal is closed
            return shown


@pytest.mark.parametrize("command", ["check", "diff"])
def test_commands_that_write_nothing_do_not_take_it(project, command):
    assert run(command, "--verify-with", "true", cwd=project).returncode == 2
