"""What is noted of a rule: measured once, kept while the case is the same, compared without the last digits."""

from __future__ import annotations

import pytest

from torchfix_codemods.measured import Measured, Row, differences, dumps, loads
from torchfix_codemods.verify.case import cases, digest
from torchfix_codemods.verify.interpreter import Interpreter
from torchfix_codemods.verify.measure import Breach, measure, shown

HARNESS = "def observe(program, device):\n    return {'value': program.load().value}\n"
CONTRACT = 'devices = ["cpu", "cuda"]\n[promises]\nraises = "same"\nvalue = { before = 1, after = 2 }\n'
RAISES = Row("rewritten", "cpu", "raises", "nothing", "nothing", "same", "holds")
VALUE = Row("rewritten", "cpu", "value", "1", "2", "before 1, after 2", "holds")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    files = {
        "rewritten/before.py": "value = 1\n",
        "rewritten/after.py": "value = 2\n",
        "rewritten/contract.toml": CONTRACT,
        "left_alone/before.py": "value = 3\n",
        "reported/before.py": "value = 5\n",
        "reported/report.toml": 'findings = [{ line = 1, says = "what" }]\n',
        "harness.py": HARNESS,
    }
    for name, text in files.items():
        path = tmp_path / "some-rule" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(Interpreter, "device_name", lambda _, device: "CPU" if device == "cpu" else "")
    return tmp_path / "some-rule"


def found(folder):
    return cases(folder.parent, "some-rule")


def test_everything_is_noted(folder):
    table = measure(found(folder))
    assert (table.rewrites, table.reports, table.refusals, table.by_hand) == (1, 1, 1, ())
    assert table.of("rewritten", "cpu") == (RAISES, VALUE)
    assert table.of("rewritten", "cuda") == (
        RAISES._replace(device="cuda", before="", after="", verdict="not verified"),
        VALUE._replace(device="cuda", before="", after="", verdict="not verified"),
    )


def test_the_text_holds_everything(folder):
    table = measure(found(folder))
    assert loads(dumps(table)) == table
    assert len(dumps(table).splitlines()) == len(table.rows) + 2
    assert loads(dumps(Measured())) == Measured()


def test_broken_promises_are_not_noted(folder):
    (folder / "rewritten" / "after.py").write_text("value = 4\n")
    with pytest.raises(Breach, match="some-rule/rewritten on cpu: value: after is 4"):
        measure(found(folder))


def test_a_case_is_executed_once(folder, monkeypatch):
    table = measure(found(folder))
    monkeypatch.setattr(Interpreter, "observe", None)
    assert measure(found(folder), table) == table
    with pytest.raises(TypeError):
        measure(found(folder), table, again=True)


@pytest.mark.parametrize("name", ["rewritten/before.py", "rewritten/contract.toml", "harness.py"])
def test_a_case_that_changed_is_executed_again(folder, monkeypatch, name):
    table = measure(found(folder))
    (folder / name).write_text((folder / name).read_text() + "# changed\n")
    monkeypatch.setattr(Interpreter, "observe", None)
    with pytest.raises(TypeError):
        measure(found(folder), table)


def test_what_a_missing_device_showed_stays_until_the_case_changes(folder):
    seen = tuple(row._replace(device="cuda") for row in (RAISES, VALUE))
    case = next(case for case in found(folder) if case.contract)
    known = Measured(digests={case.name: digest(case)}, rows=seen)
    assert measure(found(folder), known).of("rewritten", "cuda") == seen
    (folder / "harness.py").write_text(HARNESS + "# changed\n")
    assert {row.verdict for row in measure(found(folder), known).of("rewritten", "cuda")} == {"not verified"}


def test_what_was_not_verified_is_executed_when_the_device_is_there(folder, monkeypatch):
    table = measure(found(folder))
    monkeypatch.setattr(Interpreter, "device_name", lambda *_: "some device")
    assert {row.verdict for row in measure(found(folder), table).of("rewritten", "cuda")} == {"holds"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("nothing", "nothing"),
        ("one\ntwo\n", "one\\ntwo"),
        (True, "True"),
        (3, "3"),
        (2.0, "2.0"),
        (0.123456, "0.1235"),
        (1e9, "1e+09"),
        (float("nan"), "nan"),
        ([1.0, [None, "a"]], "[1.0, [None, a]]"),
        ({"total": 0.5}, "{total: 0.5}"),
        ([[0.5, -1.25]] * 5, "10 numbers from -1.25 to 0.5"),
        ([True] * 20, "[True, True, True, True, True, True, True, True, True, True…"),
        ("", ""),
    ],
)
def test_values_in_few_words(value, text):
    assert shown(value) == text


@pytest.mark.parametrize(
    ("now", "same"),
    [
        (VALUE, True),
        (VALUE._replace(before="1.01"), True),
        (VALUE._replace(before="1.5"), False),
        (VALUE._replace(before="nan"), False),
        (VALUE._replace(before="[1]"), False),
        (VALUE._replace(promised="same"), False),
        (VALUE._replace(verdict="not verified"), False),
    ],
)
def test_differences(now, same):
    assert differences([VALUE], [now]) == ([] if same else [(VALUE, now)])


def test_observations_that_come_and_go_are_differences():
    assert differences([RAISES], [VALUE]) == [(RAISES, None), (None, VALUE)]


def test_how_much_less_is_not_compared():
    row = Row("case", "cpu", "saved bytes", "4096", "0", "less, after 0", "holds")
    assert differences([row], [row._replace(before="8192")]) == []
    assert differences([row], [row._replace(before="")]) != []
