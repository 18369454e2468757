"""Cases: what a folder of fixtures may hold, and what is said of one that is wrong."""

from __future__ import annotations

import pytest

from torchfix_codemods.verify.case import FixtureError, Report, cases

CONTRACT = '[promises]\nraises = "same"\n'


@pytest.fixture
def fixtures(tmp_path):
    def write(**files):
        place = tmp_path / "some-rule" / "some_case"
        place.mkdir(parents=True)
        (place.parent / "harness.py").write_text("")
        for name, text in files.items():
            (place / name.replace("_", ".")).write_text(text)
        return tmp_path

    return write


def test_a_rewrite(fixtures):
    (case,) = cases(fixtures(before_py="a", after_py="b", contract_toml=CONTRACT), "some-rule")
    assert (case.rule, case.name, case.is_rewrite, case.is_refusal) == ("some-rule", "some_case", True, False)
    assert case.contract.promises["raises"].keeps_value


def test_a_refusal(fixtures):
    (case,) = cases(fixtures(before_py="a"), "some-rule")
    assert (case.is_rewrite, case.is_refusal, case.reports) == (False, True, ())


def test_reports(fixtures):
    (case,) = cases(fixtures(before_py="a", report_toml='findings = [{ line = 3, says = "x" }]'), "some-rule")
    assert (case.is_refusal, case.reports) == (False, (Report(3, "x"),))


def test_an_unknown_rule_has_no_cases(tmp_path):
    assert cases(tmp_path, "nothing") == []


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"after_py": "b", "contract_toml": CONTRACT}, "before.py is missing"),
        ({"before_py": "a", "after_py": "b"}, "belong together"),
        ({"before_py": "a", "contract_toml": CONTRACT}, "belong together"),
        ({"before_py": "a", "after_py": "b", "contract_toml": "promises = ["}, "contract.toml: "),
        ({"before_py": "a", "after_py": "b", "contract_toml": ""}, "contract.toml: a contract needs"),
        ({"before_py": "a", "after_py": "b", "contract_toml": "devices = ['tpu']\n" + CONTRACT}, "contract.toml: devices is a list of"),
        ({"before_py": "a", "after_py": "b", "contract_toml": "[promises]\nx = 3"}, "contract.toml: x: a promise has"),
        ({"before_py": "a", "after_py": "b", "contract_toml": '[promises]\nx = { device = "tpu" }'}, "contract.toml: x: the device"),
        ({"before_py": "a", "report_toml": "findings = []"}, "report.toml lists findings"),
        ({"before_py": "a", "report_toml": "findings = [{ line = 3 }]"}, "report.toml lists findings"),
    ],
)
def test_mistakes_name_the_file_and_what_is_expected(fixtures, files, says):
    folder = fixtures(**files)
    with pytest.raises(FixtureError) as error:
        cases(folder, "some-rule")
    assert says in str(error.value)
    assert "some_case" in str(error.value)


def test_the_after_of_a_report_is_executed_and_no_rewrite(fixtures):
    report = "findings = [{ line = 3, says = 'x' }]"
    [case] = cases(fixtures(before_py="a", after_py="b", contract_toml=CONTRACT, report_toml=report), "some-rule")
    assert (case.is_rewrite, case.is_refusal) == (False, False)
    assert case.contract is not None


def test_a_rewrite_needs_a_harness(fixtures):
    folder = fixtures(before_py="a", after_py="b", contract_toml=CONTRACT)
    (folder / "some-rule" / "harness.py").unlink()
    with pytest.raises(FixtureError, match=r"needs harness\.py"):
        cases(folder, "some-rule")
