"""The files of a project on disk, as one run sees them."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from .discover import discover

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What stands at the top of a project."""
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_WORD = re.compile(rb"\w+")
_KEYWORDS = frozenset({b"from", b"import", b"as"})


class Snapshot:
    """What a run knows of the disk. Each question is asked of the disk once, so that a file's result can't depend on when."""

    def __init__(self, folders: Sequence[str] = (), isolated: bool = False, hidden: Sequence[str] = ()) -> None:
        self._isolated, self._hidden = isolated, {absolute(path) for path in hidden}
        self._folders = sorted({absolute(folder) for folder in folders}, key=len, reverse=True)
        self._is_file: dict[str, bool] = {}
        self._roots: dict[str, str] = {}
        self._listed: dict[str, list[str]] = {}
        self._containing: dict[tuple[str, bytes], list[str]] = {}
        self._indexes: dict[str, _ImportIndex] = {}

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None when it can't be read."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def is_file(self, path: str) -> bool:
        """Whether a file is there."""
        if path not in self._is_file:
            self._is_file[path] = os.path.isfile(path) and path not in self._hidden
        return self._is_file[path]

    def root(self, path: str) -> str:
        """The top of the project: the nearest folder with a marker, else the named folder around the file, else its own."""
        folder = os.path.dirname(path)
        if folder not in self._roots:
            marked = None if self._isolated else self._marked(folder)
            self._roots[folder] = marked or self._named(folder) or self._outside_packages(folder)
        return self._roots[folder]

    def importers(self, root: str, words: frozenset[str]) -> Sequence[str]:
        """The files below a folder whose import statements hold one of some words, sorted."""
        if root not in self._indexes:
            self._indexes[root] = _ImportIndex(self._below(root))
        return self._indexes[root].having(words)

    def containing(self, root: str, text: bytes) -> Sequence[str]:
        """The files below a folder that hold a text, sorted."""
        key = (root, text)
        if key not in self._containing:
            self._containing[key] = [path for path in self._below(root) if text in (self.read(path) or b"")]
        return self._containing[key]

    def _below(self, root: str) -> list[str]:
        if root not in self._listed:
            self._listed[root] = [path for path in map(absolute, discover([root])) if path not in self._hidden]
        return self._listed[root]

    def _marked(self, folder: str) -> str | None:
        while True:
            if any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS):
                return folder
            if os.path.dirname(folder) == folder:
                return None
            folder = os.path.dirname(folder)

    def _named(self, folder: str) -> str | None:
        return next((named for named in self._folders if folder == named or folder.startswith(named.rstrip("/") + "/")), None)

    def _outside_packages(self, folder: str) -> str:
        while self.is_file(os.path.join(folder, "__init__.py")) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        return folder


class _ImportIndex:
    """The words in the import statements of some files."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def having(self, words: frozenset[str]) -> list[str]:
        return sorted({path for word in words for path in self._files.get(word.encode(), ())})

    @cached_property
    def _files(self) -> dict[bytes, list[str]]:
        files: dict[bytes, list[str]] = {}
        for path in self._paths:
            for word in _imported_words(path):
                files.setdefault(word, []).append(path)
        return files


def _imported_words(path: str) -> set[bytes]:
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return set()
    return {word for statement in _IMPORTS.findall(text) for word in _WORD.findall(statement)} - _KEYWORDS


def absolute(path: str) -> str:
    """A path as the project's names are resolved by."""
    return os.path.abspath(path).replace(os.sep, "/")
