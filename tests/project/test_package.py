"""What is built can be installed, and finds its rules."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

from torchfix_codemods.transforms import CHAIN

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist, built from a copy without leftovers; no network: the build tools are those of this environment."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(_copy(tmp_path_factory.mktemp("source")))]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def _copy(folder):
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, files.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("fixtures/", "tests/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def test_the_wheel_works_in_a_new_environment(built, tmp_path):
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    wheel = next(built.glob("*.whl"))
    subprocess.run([python, "-m", "pip", "install", "--no-deps", "--no-index", "-q", str(wheel)], check=True, capture_output=True)
    # The libraries that it needs come from here: installing them would need the network.
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True, capture_output=True)
    Path(site.stdout.decode().strip(), "libraries.pth").write_text(sysconfig.get_path("purelib"))
    for script in ("torchfix-codemods", "torchmod"):
        listed = subprocess.run([environment / "bin" / script, "rules"], check=True, capture_output=True, cwd=tmp_path)
        assert [line.split()[0] for line in listed.stdout.decode().splitlines()[1:]] == [rule.name for rule in CHAIN]
    explained = subprocess.run(
        [environment / "bin" / "torchmod", "explain", "nn-init-data-arg"], check=True, capture_output=True, cwd=tmp_path
    )
    assert "| holds" in explained.stdout.decode()
    where = subprocess.run(
        [python, "-c", "import torchfix_codemods.transforms as t; print(t.__file__)"], check=True, capture_output=True, cwd=tmp_path
    )
    assert str(environment) in where.stdout.decode()


def test_the_sdist_holds_the_catalogue(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert "transforms/__init__.py" in names
    assert "transforms/gradients/zero_grad_missing.py" in names
    assert "transforms/gradients/measured/zero-grad-missing.json" in names
