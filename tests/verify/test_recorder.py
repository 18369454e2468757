"""The recorder, in a real program with children."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from torchfix_codemods.verify.recorder.writer import FULL, Writer
from torchfix_codemods.verify.script import _SITE
from torchfix_codemods.verify.trace import read_traces

PROGRAM = Path(__file__).with_name("recorded_program.py")
LINES = {line.strip(): number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)}


def record(folder, edited):
    """Run the program recorded; the finished process and its traces."""
    shutil.copy(PROGRAM, folder / "program.py")
    (folder / "traces").mkdir()
    (folder / "edited.json").write_text(json.dumps(edited))
    (folder / "own").mkdir()
    (folder / "own" / "sitecustomize.py").write_text("import os\nos.environ['OWN_SITE'] = 'kept'\n")
    variables = {
        "TORCHFIX_SEED": "0",
        "TORCHFIX_ROOT": str(folder),
        "TORCHFIX_TRACES": str(folder / "traces"),
        "TORCHFIX_EDITED": str(folder / "edited.json"),
        "PYTHONPATH": os.pathsep.join([str(_SITE), str(folder / "own")]),
        "PYTHONHASHSEED": "0",
    }
    environ = {**os.environ, **variables, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "program.py"]
    result = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    return result, {process.name.removesuffix(" program.py"): process for process in read_traces(str(folder / "traces"))}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    edited = {"program.py": [LINES["[][1]"], LINES["parameter.grad = None"], LINES['elif clear == "by hand":'], 2]}
    return record(tmp_path_factory.mktemp("recorded"), edited)


@pytest.fixture
def main(recorded):
    return recorded[1]["main"]


def test_the_program_does_what_it_does_without(recorded):
    result, _ = recorded
    assert (result.returncode, result.stderr.splitlines()[-1]) == (1, "KeyError: 'the end'")
    assert result.stdout.endswith("kept\n")


def test_processes(recorded):
    _, processes = recorded
    assert set(processes) == {"main", "ForkProcess-1", "SpawnProcess-2"}
    for process in processes.values():
        assert process.ended
        assert process.errors == {}
        assert process.memory > 50_000_000
    for name in ("ForkProcess-1", "SpawnProcess-2"):
        assert [(row[1], row[4], row[-1]) for row in processes[name].totals["forwards"]] == [
            ("child", "Net", 1),
            ("child", "Net.fc: Linear", 1),
            ("child", "Net.drop: Dropout", 1),
        ]
        assert processes[name].rows == {}


def test_forwards_are_counted_by_mode_and_gradient_mode(main):
    net = Counter()
    for row in main.totals["forwards"]:
        if row[4] == "Net":
            net[row[1], row[5], row[6]] += row[7]
    assert net == {("train", True, True): 16, ("test", False, False): 3, ("kept", False, True): 5}
    within = {tuple(row[3]) for row in main.totals["forwards"] if row[1] == "test"}
    assert within == {("program.py:<module>", "program.py:main", "program.py:test")}


def test_steps_with_gradients_of_earlier_steps(main):
    stale = {(tuple(row[3][2:]), row[4]): (row[5], row[6]) for row in main.totals["steps"]}
    assert stale == {
        (("program.py:train",), "SGD"): (4, 3),
        (("program.py:cleared", "program.py:train"), "SGD 2"): (4, 0),
        (("program.py:cleared_by_hand", "program.py:train"), "SGD 3"): (4, 0),
        (("program.py:train",), "Adam"): (4, 0),
    }


def test_steps_without_gradients(main):
    rows = main.rows["step"]
    assert [row.values["none"] for row in rows if row.label == "Adam"] == [2, 2, 2, 2]
    assert all(row.values["norm"] > 0 and row.values["none"] == 0 for row in rows if row.label != "Adam")


def test_parameters_and_losses_are_followed(main):
    assert len({row.values["digest"] for row in main.rows["step"] if row.label != "Adam"}) == 12
    assert len(main.rows["loss"]) == len(main.rows["backward"]) == 16
    assert [a.values["value"] for a in main.rows["loss"]] == [b.values["value"] for b in main.rows["backward"]]


def test_graphs(main):
    graphs = main.totals["graphs"]
    sizes = {(row[1], row[4]): row[5:] for row in graphs["sizes"]}
    nodes, saved = sizes["train", "Net"]
    assert nodes == 5  # the product of dropout, addmm, the transposed weight, and two leaves
    assert saved > 0
    assert sizes["test", "Net"] == [0, 0]
    assert graphs["alive"] >= 5


def test_files(main):
    saves = [(row.label, row.values["kind"], row.values["loads"]) for row in main.rows["save"]]
    assert saves == [("model.pt", "module Net", "UnpicklingError"), ("state.pt", "dict of int, state dict", "yes")]
    (load,) = main.rows["load"]
    assert load.values == {"kind": "dict of int, state dict", "map_location": "cpu", "weights_only": "True"}


def test_notices(main):
    assert main.totals["warnings"] == [
        ["program.py", "caught", LINES['warnings.warn("careful", UserWarning, stacklevel=1)'], "UserWarning", "careful", 1]
    ]
    reached = main.totals["reached"]
    assert [(row[1], row[3], row[5]) for row in reached["raised"]] == [("caught", "IndexError", 1), ("main", "KeyError", 1)]
    (end,) = main.rows["raised"]
    assert (end.label, end.place.file, end.place.line) == ("KeyError", "program.py", LINES['raise KeyError("the end")'])
    lines = [["program.py", LINES[text]] for text in ('elif clear == "by hand":', "parameter.grad = None", "[][1]")]
    assert (reached["lines"], reached["complete"]) == (sorted(lines), True)


def test_a_second_run_records_the_same(recorded, tmp_path):
    _, first = recorded
    _, second = record(tmp_path, {})
    for name, process in first.items():
        assert second[name].totals["forwards"] == process.totals["forwards"]
        for kind in ("loss", "backward", "save"):
            assert second[name].rows.get(kind) == process.rows.get(kind)
        states = [[(row.values["digest"], row.values["random"]) for row in p.rows.get("step", ())] for p in (process, second[name])]
        assert states[0] == states[1]


def test_of_a_long_series_ever_fewer_events_are_written(tmp_path):
    writer = Writer(str(tmp_path))
    written = [number for number, wanted in (writer.number("series") for _ in range(FULL * 8)) if wanted]
    assert written[:FULL] == list(range(1, FULL + 1))
    assert len(written) == FULL * 4
    assert written[-1] == FULL * 8


def test_an_error_of_the_recorder_is_noted_and_not_raised(tmp_path):
    writer = Writer(str(tmp_path))
    writer.guarded(lambda: 1 / 0)()
    writer.finish()
    (trace,) = tmp_path.iterdir()
    assert "ZeroDivisionError" in trace.read_text().splitlines()[1]
