"""Which files to look at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pathspec import PathSpec
    from pathspec.pattern import Pattern

_NEVER = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".eggs"})


class MissingPath(Exception):
    """A path given on the command line that does not exist."""


def discover(paths: Iterable[str]) -> list[str]:
    """The Python files below some paths, sorted and without doubles; files that are named are always taken.

    Inside a git repository these are the files that git tracks or would track; elsewhere `.gitignore` files are
    honoured all the same. Raises `MissingPath`.
    """
    found: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            found.update(_below(path))
        elif os.path.exists(path):
            found.add(os.path.normpath(path))
        else:
            raise MissingPath(f"{path}: no such file or directory")
    return sorted(found)


def _below(folder: str) -> Iterator[str]:
    listed = _listed_by_git(folder)
    for path in _walked(folder) if listed is None else listed:
        if path.endswith(".py") and os.path.isfile(path):
            yield os.path.normpath(path)


def _listed_by_git(folder: str) -> list[str] | None:
    """Tracked and untracked files that aren't ignored; None outside a repository, or where git is missing."""
    import subprocess

    command = ["git", "-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        result = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return None
    if result.returncode != 0:
        return None
    return [os.path.join(folder, os.fsdecode(name)) for name in result.stdout.split(b"\0") if name]


def _walked(folder: str) -> Iterator[str]:
    specs: dict[str, list[tuple[str, PathSpec[Pattern]]]] = {}
    for root, folders, files in os.walk(folder):
        inherited = specs.get(os.path.dirname(root), []) if root != folder else []
        own = _ignore_file(root)
        active = [*inherited, (root, own)] if own else inherited
        specs[root] = active
        folders[:] = sorted(
            name for name in folders if not _is_skipped(root, name) and not _is_ignored(active, os.path.join(root, name) + "/")
        )
        yield from (os.path.join(root, name) for name in files if not _is_ignored(active, os.path.join(root, name)))


def _ignore_file(root: str) -> PathSpec[Pattern] | None:
    import pathspec

    try:
        with open(os.path.join(root, ".gitignore"), encoding="utf-8", errors="replace") as file:
            return pathspec.PathSpec.from_lines("gitignore", file)
    except OSError:
        return None


def _is_ignored(active: list[tuple[str, PathSpec[Pattern]]], path: str) -> bool:
    return any(spec.match_file(os.path.relpath(path, base) + ("/" if path.endswith("/") else "")) for base, spec in active)


def _is_skipped(root: str, name: str) -> bool:
    return name in _NEVER or os.path.exists(os.path.join(root, name, "pyvenv.cfg"))
