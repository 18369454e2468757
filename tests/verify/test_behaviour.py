"""`verify --script` on the example project: each promised change is named, nothing else; wrong rules are regressions."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.commands import run
from tests.packs import WRONG_RULES, with_pack

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def compared(folder, script, *options, environment=()):
    """The report on a script of the examples, as it was written and printed."""
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, folder)
    before = {path.name: path.read_bytes() for path in folder.glob("*.py")}
    command = f"{sys.executable} -W ignore {script}"
    arguments = ["verify", "--script", command, "--json", "report.json", "--html", "report.html", *options, script, "synthetic.py"]
    result = run(*arguments, cwd=folder, environment={"OMP_NUM_THREADS": "1", **dict(environment)})
    assert {path.name: path.read_bytes() for path in folder.glob("*.py")} == before
    report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else {}
    return SimpleNamespace(status=result.returncode, text=result.stdout.decode(), errors=result.stderr.decode(), **report, folder=folder)


@pytest.fixture(scope="module")
def cnn(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("cnn"), "train_cnn.py", "--unsafe-fixes")


@pytest.fixture(scope="module")
def rnn(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("rnn"), "train_rnn.py", "--unsafe-fixes")


@pytest.fixture(scope="module")
def gan(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("gan"), "train_gan.py", "--unsafe-fixes")


def shown(report):
    """What was promised and seen: rule, promise, before and after."""
    return {(p["rule"], p["promise"], p["before"], p["after"]) for p in report.promises if p["verdict"] == "shown"}


@pytest.mark.parametrize("name", ["cnn", "rnn", "gan"])
def test_no_false_regression(name, request):
    report = request.getfixturevalue(name)
    assert (report.status, report.regressions, report.not_judged) == (0, [], [])
    assert {p["verdict"] for p in report.promises} <= {"shown", "holds", "changed", "the same"}
    assert "no regression" in report.text
    assert not any(process["recorder_errors"] for side in (report.before, report.after) for process in side["processes"])


def test_cnn_shows_what_is_saved_and_what_no_longer_hangs_on_the_losses(cnn):
    assert shown(cnn) == {
        (
            "whole-model-save-load",
            "saved: changes",
            "module Net, with weights_only: UnpicklingError",
            "state dict, loads with weights_only",
        ),
        ("whole-model-save-load", "loaded: changes", "UnpicklingError", "state dict, map_location=cpu, weights_only=True"),
        ("whole-model-save-load", "exceptions: less", "1", "0"),
        ("tensor-to-numpy", "exceptions: less", "1", "0"),
        ("loss-graph-accumulation", "graph nodes alive: less", "256", "31"),
        ("eval-missing-no-grad", "graph nodes alive: less", "256", "31"),
        ("eval-missing-no-grad", "gradients at forward: off", "on ×8", "off ×12"),
        ("eval-missing-no-grad", "bytes saved for backward: less", "190400", "0"),
    }


def test_cnn_safe_fixes_leave_the_values_alone(cnn):
    holding = {p["rule"] for p in cnn.promises if p["promise"] == "everything else the same" and p["verdict"] == "holds"}
    assert holding == {
        "data-inplace-to-no-grad",
        "data-read-to-detach",
        "eval-missing-no-grad",
        "loss-graph-accumulation",
        "nn-init-data-arg",
        "tensor-to-numpy",
    }


def test_rnn_shows_gradients_that_included_earlier_steps(rnn):
    assert ("zero-grad-missing", "steps with stale gradients: less", "141", "0") in shown(rnn)
    assert ("eval-missing-eval-mode", "mode at forward: eval", "train ×142", "eval ×142") in shown(rnn)
    assert ("scalar-index-to-item", "exceptions: less", "2", "0") in shown(rnn)


def test_gan_shows_steps_that_had_no_gradients(gan):
    assert ("zero-grad-wipes-gradients", "steps without gradients: less", "60", "0") in shown(gan)
    assert ("eval-mode-not-restored", "mode at forward: train", "eval ×118, train ×2", "train ×120") in shown(gan)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("drop-optimizer-step", ("optimizer steps", 47, "32", "0")),
        ("return-early", ("outcome", 78, "nothing", "TypeError: cannot unpack non-iterable NoneType object (in main)")),
    ],
)
def test_a_wrong_rule_is_a_regression_at_its_place(rule, expected, tmp_path):
    report = compared(tmp_path, "train_cnn.py", "--select", rule, environment=with_pack(WRONG_RULES))
    assert report.status == 1
    assert {r["file"] for r in report.regressions} <= {"train_cnn.py", ""}
    assert expected in {(r["aspect"], r["line"], r["before"], r["after"]) for r in report.regressions}
    assert all(suspect.startswith(rule) for r in report.regressions for suspect in r["rules"])
    assert f"{rule} (" in report.text


OLD_SCRIPT = """\
import torch
from torch import nn
from torch.autograd import Variable

model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(3, 4), torch.tensor([0, 1, 0])) for _ in range(4)]


def train():
    for x, y in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(Variable(x)), y)
        loss.backward()
        optimizer.step()
        print("loss", loss.data[0])


def test():
    model.eval()
    correct = 0
    for x, y in data:
        output = model(x)
        correct += (output.argmax(1) == y).sum().item()
    print("correct", correct)
    return correct


train()
test()
"""


def test_a_script_that_ends_at_an_old_idiom_is_compared_behind_it_too(tmp_path):
    (tmp_path / "old.py").write_text(OLD_SCRIPT)
    result = run("verify", "--script", f"{sys.executable} old.py", "--json", "report.json", "old.py", cwd=tmp_path)
    report = SimpleNamespace(**json.loads((tmp_path / "report.json").read_text()))
    assert (result.returncode, report.regressions, report.before["passed"], report.after["passed"]) == (0, [], False, True)
    assert [(stage["rules"], stage["passed"]) for stage in report.going_on] == [(["scalar-index-to-item"], True)]
    assert ("eval-missing-no-grad", "gradients at forward: off", "on ×4", "off ×4") in shown(report)
    assert ("scalar-index-to-item", "exceptions: less", "1", "0") in shown(report)
    assert all(fix["run"] for fix in report.fixes)
    assert "it goes on with those of scalar-index-to-item alone" in result.stdout.decode()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"


def test_the_page_draws_its_plots_in_a_browser(cnn):
    from playwright.sync_api import sync_playwright

    html = (cnn.folder / "report.html").read_text()
    assert 'src="http' not in html
    complaints = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((cnn.folder / "report.html").as_uri())
        page.wait_for_selector(".js-plotly-plot path.js-line", state="attached")
        titles = page.locator(".js-plotly-plot .gtitle").all_text_contents()
        lines = [plot.locator("path.js-line").count() for plot in page.locator(".js-plotly-plot").all()]
        inside = page.evaluate("[...document.querySelectorAll('.plot')].every(p => p.scrollWidth <= p.clientWidth)")
        rows = page.locator("#promises tr").count()
        page.screenshot(path=cnn.folder / "report.png", full_page=True)
        browser.close()
    assert titles == ["gradient norm", "graph nodes alive", "loss", "process memory (bytes)"]
    assert all(count >= 2 for count in lines)
    assert inside
    assert rows == len(cnn.promises) + 1
    assert complaints == []
    assert (cnn.folder / "report.png").stat().st_size > 50_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--script", f"{sys.executable} -c pass", "code.py"), "did nothing with torch that could be recorded"),
        (("--script", " ", "code.py"), "--script needs a command"),
        (("--script", "true", "--device", "cpu", "code.py"), "--device is for the fixtures of rules"),
        (("--timeout", "3"), "--timeout needs a program of yours to run"),
        (("--script", "true", "--html", "no/such/page.html", "code.py"), "there is no folder no/such"),
        (("--script", "true", "missing.py"), "missing.py"),
        (("--script", "true", "-"), "--script needs files"),
    ],
)
def test_mistakes(arguments, message, tmp_path):
    (tmp_path / "code.py").write_text("import torch\n\n\ndef f(x: torch.Tensor):\n    return x.sum().data[0]\n")
    result = run("verify", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr.decode()
    assert b"Traceback" not in result.stderr


def test_nothing_to_fix(tmp_path):
    (tmp_path / "code.py").write_text("import torch\n")
    result = run("verify", "--script", "false", "code.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"Nothing to fix, so nothing to compare.\n")
