"""The page about executions: what ran, what never did, and what changed since."""

from __future__ import annotations

from torchfix_codemods.output.verified import verified
from torchfix_codemods.recorded import Executable, Execution

CPU = Executable("cpu", "some-rule", "one", "d1")
CUDA = Executable("cuda", "some-rule", "one", "d1")
RAN = Execution("cpu", "2.13.0+cpu", "some-rule", "one", "CPU", "3.11.7", "2026-12-03", 4, "holds", "d1")


def lines(executions, executables):
    """The rows of all tables, as words between bars."""
    return [" ".join(line.split()) for line in verified(executions, executables).splitlines() if line.startswith("| ")]


def test_a_case_that_no_gpu_has_run_says_so():
    assert "| some-rule | one | | | | no GPU has run this yet |" in lines([RAN], [CPU, CUDA])


def test_a_run_on_a_gpu_is_told_with_device_torch_and_date():
    ran = RAN._replace(device="cuda", name="Some GPU", torch="2.14.1+cu130")
    rows = lines([ran, ran._replace(case="two")], [CUDA, CUDA._replace(case="two"), CUDA._replace(case="three")])
    assert "| some-rule | one, two | Some GPU | 2.14.1+cu130 | 2026-12-03 | holds |" in rows
    assert "| some-rule | three | | | | no GPU has run this yet |" in rows
    assert "| Some GPU | 2.14.1+cu130 | 3.11.7 | 2026-12-03 | 2 | 8 | 0 | 0 | 0 |" in rows


def test_a_case_that_was_edited_is_not_shown_as_kept():
    stale = RAN._replace(digest="older")
    rows = lines([stale, stale._replace(device="cuda", name="Some GPU")], [CPU, CUDA])
    assert "| some-rule | 1 | 1 changed since 2026-12-03 |" in rows
    assert "| some-rule | one | Some GPU | 2.13.0+cpu | 2026-12-03 | changed since 2026-12-03 |" in rows
    assert "| CPU | 2.13.0+cpu | 3.11.7 | 2026-12-03 | 1 | 0 | 0 | 0 | 1 |" in rows


def test_versions_stand_side_by_side_with_the_newest_first():
    old = RAN._replace(torch="2.4.1+cu121", promises=0, verdict="needs torch >=2.6", date="2026-11-30")
    new = RAN._replace(torch="2.14.1+cu130")
    rows = lines([old, RAN, new, old._replace(case="two", verdict="holds", promises=3)], [CPU, CPU._replace(case="two")])
    assert "| rule | cases | torch 2.14.1+cu130 | torch 2.13.0+cpu | torch 2.4.1+cu121 |" in rows
    assert "| some-rule | 2 | 1 held; 1 never run | 1 held; 1 never run | 1 needs torch >=2.6; 1 held |" in rows
    assert "| CPU | 2.4.1+cu121 | 3.11.7 | 2026-11-30 | 2 | 3 | 0 | 1 | 0 |" in rows


def test_broken_promises_are_named():
    rows = lines([RAN._replace(verdict="BREACH: changed")], [CPU])
    assert "| some-rule | 1 | 1 one: BREACH: changed |" in rows
    assert "| CPU | 2.13.0+cpu | 3.11.7 | 2026-12-03 | 1 | 0 | 1 | 0 | 0 |" in rows


def test_cases_that_are_gone_are_not_shown():
    assert not any("gone" in row for row in lines([RAN._replace(case="gone")], [CPU]))


def test_an_empty_record_has_nothing_but_what_never_ran():
    rows = lines([], [CPU, CUDA])
    assert "| some-rule | one | | | | no GPU has run this yet |" in rows
    assert "| some-rule | 1 |" in rows
