"""The table of a proof: every row that must be there, and the exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchfix_codemods.recorded import loads
from torchfix_codemods.rule import Category, Rule, Safety
from torchfix_codemods.verify.command import Tool, run
from torchfix_codemods.verify.interpreter import Interpreter, present

HARNESS = "def observe(program, device):\n    return {'value': program.load().value}\n"


class SomeRule(Rule):
    """Turns 1 into 2."""

    name = "some-rule"
    category = Category.SCALARS
    safety = Safety.UNSAFE
    needles = (b"value",)

    def find(self, _):
        return iter(())


def rewrite(_, path, unsafe):
    data = path.read_bytes()
    return data.replace(b"= 1", b"= 2") if unsafe else data


def findings(_, path):
    return [(1, "says what", False)] if "report" in path.parent.name else []


GOOD = Tool(rewrite, findings)


@pytest.fixture
def fixtures(tmp_path):
    files = {
        "rewritten/before.py": "value = 1\n",
        "rewritten/after.py": "value = 2\n",
        "rewritten/contract.toml": 'unsafe = true\ndevices = ["cpu", "cuda"]\n[promises]\nraises = "same"\n'
        "value = { before = 1, after = 2 }\n",
        "left_alone/before.py": "value = 3\n",
        "left_too/before.py": "value = 4\n",
        "reported/before.py": "value = 5\n",
        "reported/report.toml": 'findings = [{ line = 1, says = "what" }]\n',
        "harness.py": HARNESS,
    }
    for name, text in files.items():
        path = tmp_path / "some-rule" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def prove(fixtures, capsys, monkeypatch):
    """The exit status, and each printed row as words."""
    monkeypatch.setattr(Interpreter, "device_name", lambda _, device: "CPU" if device == "cpu" else "")

    def proof(tool=GOOD, device="all", rule=None, record=None):
        status = run([rule or SomeRule()], device, fixtures, tool, present(), record)
        printed = capsys.readouterr()
        return status, [" ".join(line.split()) for line in printed.out.splitlines()], printed.err

    return proof


def test_everything_holds(prove):
    status, lines, _ = prove()
    assert status == 0
    assert lines == [
        "rule case device observation before after promised verdict",
        "some-rule rewritten text of the rewrite holds",
        "some-rule rewritten cpu raises nothing nothing same holds",
        "some-rule rewritten cpu value 1 2 before 1, after 2 holds",
        "some-rule rewritten cuda not verified",
        "some-rule 2 refusals silent holds",
        "some-rule 1 report made holds",
        f"5 promises kept, 0 broken, 1 not verified: {present().versions}.",
    ]


def test_fixtures_can_be_named_from_the_current_folder(fixtures, capsys, monkeypatch):
    monkeypatch.chdir(fixtures.parent)
    assert run([SomeRule()], "cpu", Path(fixtures.name), GOOD, present()) == 0
    assert "5 promises kept" in capsys.readouterr().out


def test_a_device_can_be_chosen(prove):
    _, lines, _ = prove(device="cpu")
    assert not any("cuda" in line for line in lines)
    _, lines, _ = prove(device="cuda")
    assert not any(" cpu " in line for line in lines)


def test_a_text_that_differs_is_a_breach(prove):
    status, lines, _ = prove(Tool(lambda *_: b"value = 7\n", findings))
    assert status == 1
    assert "some-rule rewritten text of the rewrite BREACH: the rewrite is not after.py" in lines


def test_a_rewrite_that_never_rests_is_a_breach(prove):
    status, lines, _ = prove(Tool(lambda rule, path, unsafe: rewrite(rule, path, unsafe) + b"#" * (path.name == "after.py"), findings))
    assert status == 1
    assert "some-rule rewritten text of the rewrite BREACH: a second rewrite changes the code again" in lines


def test_a_wrong_safety_is_a_breach(prove):
    status, lines, _ = prove(Tool(lambda rule, path, _: rewrite(rule, path, True), findings))
    assert status == 1
    assert "some-rule rewritten text of the rewrite BREACH: fixed as safe, but the contract says unsafe" in lines


def test_a_refusal_that_speaks_is_a_breach_of_its_own(prove):
    status, lines, _ = prove(Tool(rewrite, lambda _, path: [(1, "says what", path.parent.name == "left_too")]))
    assert status == 1
    assert "some-rule left_alone silence BREACH: 1 unexpected finding at line 1" in lines
    assert "some-rule left_too silence BREACH: a fix is offered" in lines
    assert not any("refusal" in line for line in lines)


def test_a_report_that_is_missing_is_a_breach(prove):
    status, lines, _ = prove(Tool(rewrite, lambda *_: []))
    assert status == 1
    assert "some-rule reported reports BREACH: no report at line 1 that says 'what'" in lines


def test_a_broken_promise_is_a_breach(prove, fixtures):
    contract = fixtures / "some-rule" / "rewritten" / "contract.toml"
    contract.write_text('unsafe = true\n[promises]\nraises = "same"\nvalue = "same"\n')
    status, lines, _ = prove()
    assert status == 1
    assert "some-rule rewritten cpu value 1 2 same BREACH: changed" in lines


def test_a_promise_of_another_device_is_not_asked_for(prove, fixtures):
    with (fixtures / "some-rule" / "rewritten" / "contract.toml").open("a") as contract:
        contract.write('memory = { relation = "less", device = "cuda" }\n')
    status, lines, _ = prove()
    assert status == 0
    assert not any("memory" in line for line in lines)


def test_a_rule_without_fixtures_is_a_breach(prove):
    class Bare(SomeRule):
        """Has no fixtures."""

        name = "bare-rule"

    status, lines, _ = prove(rule=Bare())
    assert status == 1
    assert "bare-rule cases at least one BREACH: the rule has no fixtures" in lines


def test_a_fixture_that_is_none_is_told_with_its_file(prove, fixtures):
    (fixtures / "some-rule" / "rewritten" / "contract.toml").write_text("[promises")
    status, lines, error = prove()
    assert (status, lines) == (2, [])
    assert error.startswith("error: ")
    assert "contract.toml: " in error


def test_an_absent_gpu_is_told_and_is_an_error_when_it_was_asked_for(prove):
    status, _, error = prove()
    assert (status, error) == (0, f"No GPU is here that {present().versions} can use: run this on a machine with one.\n")
    status, lines, error = prove(device="cuda")
    assert (status, error.partition(" is here")[0]) == (2, "No GPU")
    assert "some-rule rewritten cuda not verified" in lines
    assert prove(device="cpu")[2] == ""


def test_a_case_for_another_torch_is_not_executed(prove, fixtures):
    contract = fixtures / "some-rule" / "rewritten" / "contract.toml"
    contract.write_text('torch = ">=99"\n' + contract.read_text())
    (fixtures / "some-rule" / "harness.py").write_text("raise RuntimeError")
    status, lines, _ = prove(device="cpu")
    assert status == 0
    assert "some-rule rewritten cpu needs torch >=99" in lines
    assert lines[-1] == f"3 promises kept, 0 broken, 0 not verified, 1 for another torch: {present().versions}."


def test_what_was_executed_is_recorded(prove, tmp_path):
    record = tmp_path / "record.json"
    assert prove(record=record)[0] == 0
    (entry,) = loads(record.read_text())
    assert (entry.device, entry.rule, entry.case, entry.promises, entry.verdict) == ("cpu", "some-rule", "rewritten", 2, "holds")


def test_a_record_that_is_none_stays_as_it_is(prove, tmp_path):
    record = tmp_path / "record.json"
    record.write_text("precious")
    status, lines, error = prove(record=record)
    assert (status, lines, record.read_text()) == (2, [], "precious")
    assert error.startswith(f"error: {record}: can't be read as a record")
