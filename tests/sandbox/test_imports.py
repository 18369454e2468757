"""The copy is imported, and not the original that an installed Python knows of."""

from __future__ import annotations

import os
import sys
import venv

import pytest

from torchfix_codemods.sandbox import Options, opened

FINDER = """
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path

MAPPING = {mapping!r}
NAMESPACES = {{}}


class _EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname in MAPPING:
            for place in (Path(MAPPING[fullname]) / "__init__.py", Path(MAPPING[fullname] + ".py")):
                if place.exists():
                    return spec_from_file_location(fullname, place)
        return None


def install():
    sys.meta_path.append(_EditableFinder)
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    for path in ("pyproject.toml", "src/pkg/__init__.py", "src/pkg/sub.py", "src/single.py", "elsewhere/__init__.py", "elsewhere/deep.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("WHERE = __file__\n")
    return folder


@pytest.fixture
def environment():
    """An environment of Python, with files of an editable install written by hand."""

    def make(place, files):
        venv.create(place, with_pip=False)
        site = next((place / "lib").glob("python*")) / "site-packages"
        for name, text in files.items():
            (site / name).write_text(text)
        return place / "bin"

    return make


def seen(project, bin_folder, command, monkeypatch, pythonpath="", files=None):
    """What a command prints in the private copy, with COPY for its folder, which it prints first."""
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", pythonpath)
    with opened([str(project)], Options()) as sandbox:
        outcome = sandbox.trial(command, files or {})
        assert outcome.passed, outcome.log()
        again = sandbox.trial(command, files or {})
    assert again.stdout == outcome.stdout
    text = outcome.stdout.text
    return text.replace(text.split()[0], "COPY").split()


PRINT = 'pwd; python -c "import {0}; print({0}.WHERE)"'


def test_a_path_file(project, environment, tmp_path, monkeypatch):
    programs = environment(tmp_path / "env", {"__editable__.pkg.pth": f"{project}/src\n"})
    assert seen(project, programs, PRINT.format("pkg.sub"), monkeypatch) == ["COPY", "COPY/src/pkg/sub.py"]


def mapped(mapping):
    return {
        "__editable__.pkg.pth": "import __editable___pkg_finder; __editable___pkg_finder.install()\n",
        "__editable___pkg_finder.py": FINDER.format(mapping=mapping),
    }


@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("pkg", "src/pkg/__init__.py"),
        ("single", "src/single.py"),
        ("pkg.far", "src/pkg/far/__init__.py"),
        ("pkg.far.deep", "src/pkg/far/deep.py"),
        ("renamed.deep", ".torchfix/imports/renamed/deep.py"),
    ],
)
def test_a_finder(project, environment, tmp_path, monkeypatch, module, place):
    src, elsewhere = f"{project}/src", f"{project}/elsewhere"
    table = {"pkg": f"{src}/pkg", "single": f"{src}/single", "pkg.far": elsewhere, "renamed": elsewhere}
    programs = environment(tmp_path / "env", mapped(table))
    name = os.path.relpath(os.path.realpath(project / "elsewhere" / "deep.py"), project)
    result = seen(project, programs, PRINT.format(module), monkeypatch, files={name: b"WHERE = __file__  # changed\n"})
    assert result == ["COPY", f"COPY/{place}"]


def test_an_environment_inside_the_project(project, environment, monkeypatch):
    programs = environment(project / ".venv", {"__editable__.pkg.pth": f"{project}/src\n"})
    command = 'pwd; .venv/bin/python -c "import pkg, sys; print(pkg.WHERE, sys.prefix)"'
    assert seen(project, "/bin", command, monkeypatch) == ["COPY", "COPY/src/pkg/__init__.py", "COPY/.venv"]
    assert seen(project, programs, PRINT.format("pkg"), monkeypatch)[1] == "COPY/src/pkg/__init__.py"


def test_the_python_of_a_script(project, environment, tmp_path, monkeypatch):
    programs = environment(tmp_path / "env", {"__editable__.pkg.pth": f"{project}/src\n"})
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "where").write_text(f"#!{programs}/python\nimport os, pkg\nprint(os.getcwd(), pkg.WHERE)\n")
    (tools / "where").chmod(0o755)
    assert seen(project, tools, "where", monkeypatch) == ["COPY", "COPY/src/pkg/__init__.py"]


def test_search_paths_of_the_user(project, monkeypatch):
    (project / "bin").mkdir()
    (project / "bin/where").write_text(f"#!/bin/sh\npwd\n{sys.executable} -c 'import pkg; print(pkg.WHERE)'\necho $0\n")
    (project / "bin/where").chmod(0o755)
    result = seen(project, project / "bin", "where", monkeypatch, pythonpath=f"{project}/src")
    assert result == ["COPY", "COPY/src/pkg/__init__.py", "COPY/bin/where"]
