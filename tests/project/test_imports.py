"""Imports point one way: the table of the design, checked on every module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VALUES = {"source", "rule", "edits.kinds", "edits"}

ALLOWED = {
    "source": set(),
    "rule": {"source", "edits", "model"},
    "model": {"source"},
    "edits": {"source"},
    "history": set(),
    "engine": {"history", "rule", "model", "edits", "source"},
    "catalogue": {"rule", "transforms"},
    "transforms": {"rule", "effects", "model", "edits"},
    "fingerprint": {"rule", "source"},
    "workspace": {"engine", "fingerprint", "model", "source", "rule"},
    "measured": set(),
    "recorded": set(),
    "effects": set(),
    "sandbox": set(),
    "blame": {"rule", "workspace", "sandbox", "source", "engine"},
    "output": {"rule", "workspace", "measured", "recorded"},
    "verify": {"rule", "effects", "source", "output", "measured", "recorded"},
    "cli": {"blame", "sandbox", "catalogue", "rule", "workspace", "output", "verify", "measured", ""},
    "__main__": {"cli"},
    "": set(),
}
HEAVY = {"torch": "verify", "libcst": "edits", "typer": "cli", "rich": ("cli", "output"), "pathspec": "workspace", "numpy": "verify"}


def modules():
    for folder, prefix in ((ROOT / "torchfix_codemods", ""), (ROOT / "transforms", "transforms.")):
        for path in sorted(folder.rglob("*.py")):
            name = prefix + ".".join(path.relative_to(folder).with_suffix("").parts)
            yield name.removesuffix(".__init__").removesuffix("__init__"), path


def imports(name, path):
    """Absolute dotted names that a module imports when it runs: those for type checkers alone are exempt."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.unparse(test.test)
        for node in ast.walk(test)
    }
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (
                ["torchfix_codemods", *[part for part in package if part]][: len([p for p in package if p]) + 2 - node.level]
                if node.level
                else []
            )
            yield ".".join([*base, *([node.module] if node.module else [])])


def area(name):
    return name.split(".")[0]


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else "")
def test_direction(name, path):
    mine = area(name)
    for imported in imports(name, path):
        if imported.split(".")[0] == "torchfix_codemods":
            target = area(imported.removeprefix("torchfix_codemods").removeprefix("."))
            assert target == mine or target in ALLOWED[mine], f"{name} imports {imported}"
        heavy = HEAVY.get(imported.split(".")[0])
        assert heavy is None or mine in heavy, f"{name} imports {imported}"


def test_every_package_is_in_the_distribution():
    text = (ROOT / "pyproject.toml").read_text()
    packages = {
        ".".join(["torchfix_codemods", *path.parent.relative_to(ROOT / "torchfix_codemods").parts])
        for path in (ROOT / "torchfix_codemods").rglob("__init__.py")
    }
    packages |= {
        ".".join(["torchfix_codemods.transforms", *path.parent.relative_to(ROOT / "transforms").parts])
        for path in (ROOT / "transforms").rglob("__init__.py")
    }
    assert packages == {line.strip(' ",') for line in text.splitlines() if line.startswith('    "torchfix_codemods')}


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else "")
def test_sizes(name, path):
    """Small files with one purpose, and functions that fit a screen."""
    assert len(path.read_text().splitlines()) <= 300, name
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno - node.lineno < 40, f"{name}:{node.name}"
