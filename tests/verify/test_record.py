"""A record holds the last execution of each case on each device with each torch."""

from __future__ import annotations

import datetime as dt

import pytest

from torchfix_codemods.recorded import Execution, dumps, loads
from torchfix_codemods.verify.case import cases, digest
from torchfix_codemods.verify.command import Row
from torchfix_codemods.verify.interpreter import Versions
from torchfix_codemods.verify.record import RecordError, merged, read, write

NEW = 'torch = ">=2.6"\ndevices = ["cpu", "cuda"]\n[promises]\nraises = "same"\n'


class Python:
    """Stands for an interpreter on a machine with a GPU."""

    versions = Versions("3.12.1", "2.14.1")

    def device_name(self, device):
        return {"cpu": "CPU", "cuda": "Some GPU"}[device]


@pytest.fixture
def found(tmp_path):
    for name in ("harness.py", "one/before.py", "one/after.py", "silent/before.py"):
        path = tmp_path / "some-rule" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "some-rule" / "one" / "contract.toml").write_text(NEW)
    return cases(tmp_path, "some-rule")


def row(device="cpu", verdict="holds", case="one"):
    return Row("some-rule", case, device, "x", "", "", "same", verdict)


def test_one_entry_for_each_device(found):
    text = Row("some-rule", "one", "", "text of the rewrite", "", "", "", "holds")
    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    entries = merged([], [text, row(), row(), row("cuda")], found, Python())
    mark = digest(found[0])
    assert entries == [
        Execution("cpu", "2.14.1", "some-rule", "one", "CPU", "3.12.1", today, 2, "holds", mark),
        Execution("cuda", "2.14.1", "some-rule", "one", "Some GPU", "3.12.1", today, 1, "holds", mark),
    ]


def test_what_did_not_run_leaves_no_entry_or_says_so(found):
    entries = merged([], [row(verdict="needs torch >=2.6"), row("cuda", "not verified")], found, Python())
    assert [(entry.device, entry.promises, entry.verdict) for entry in entries] == [("cpu", 0, "needs torch >=2.6")]


def test_the_first_breach_is_the_verdict(found):
    (entry,) = merged([], [row(), row(verdict="BREACH: changed"), row(verdict="BREACH: more")], found, Python())
    assert (entry.promises, entry.verdict) == (3, "BREACH: changed")


def test_the_newest_execution_stands_and_others_stay(found):
    (now,) = merged([], [row()], found, Python())
    before = now._replace(date="2020-01-01", digest="another")
    elsewhere = [now._replace(torch="2.4.1"), now._replace(device="cuda"), now._replace(rule="another-rule")]
    assert sorted(merged([before, *elsewhere], [row()], found, Python())) == sorted([now, *elsewhere])


def test_cases_that_are_gone_leave(found):
    (now,) = merged([], [row()], found, Python())
    assert merged([now._replace(case="gone"), now._replace(case="silent")], [row()], found, Python()) == [now]


def test_a_file_is_what_was_written(tmp_path, found):
    entries = merged([], [row(), row("cuda")], found, Python())
    write(tmp_path / "record.json", reversed(entries))
    assert read(tmp_path / "record.json") == entries
    assert len((tmp_path / "record.json").read_text().splitlines()) == len(entries) + 2
    assert loads(dumps([])) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"executions": [["too", "short"]]}', '{"executions": 3}'])
def test_what_is_no_record_is_told(tmp_path, text):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(RecordError, match=r"record.json: can't be read as a record .* name another file with --record"):
        read(tmp_path / "record.json")


def test_a_folder_that_is_missing_is_told_before_anything_runs(tmp_path):
    with pytest.raises(RecordError, match="there is no folder"):
        read(tmp_path / "missing" / "record.json")
    assert read(tmp_path / "record.json") == []
