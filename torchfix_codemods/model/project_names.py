"""What the imports of a project refer to, resolved as Python would: in packages, scripts and `src` folders."""

from __future__ import annotations

import sys
from posixpath import dirname, join
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from .outline import outline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .outline import ClassOutline, Outline

_LIBRARIES = frozenset({"torch", "torchvision", "torchaudio", "numpy"})
"""Always the installed ones, even where the project is that library."""


class Files(Protocol):
    """The files of a run, as they were when it began; paths are absolute, with forward slashes."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None when it can't be read."""

    def is_file(self, path: str) -> bool:
        """Whether a file is there."""

    def root(self, path: str) -> str:
        """The folder up to which the imports of a file are searched."""

    def importers(self, root: str, words: frozenset[str]) -> Sequence[str]:
        """The files below a folder whose import statements hold one of some words."""

    def containing(self, root: str, text: bytes) -> Sequence[str]:
        """The files below a folder that hold a text."""


class Symbol(NamedTuple):
    """A class or function of the project by file and name (`Net`, `Net.forward`), or with an empty name a module."""

    path: str
    name: str = ""


Answers: TypeAlias = dict[tuple[str, str], Symbol | None]


class ProjectNames:
    """Name resolution across files. Whatever is ambiguous, or isn't part of the project, resolves to None."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._outlines: dict[str, Outline] = {}
        self._resolved: Answers = {}

    def outline(self, path: str) -> Outline:
        """What is visible of a file; nothing when it can't be read."""
        if path not in self._outlines:
            self._outlines[path] = outline(self.files.read(path) or b"")
        return self._outlines[path]

    def resolve(self, path: str, dotted: str) -> Symbol | None:
        """What a dotted name (relative when it begins with a dot) in the imports of the file at `path` refers to."""
        key = (path, dotted)
        if key not in self._resolved:
            # Each question has answers of its own on the way: in circles of imports they depend on where it began.
            self._resolved[key] = self._ask(path, dotted, {})
        return self._resolved[key]

    def _ask(self, path: str, dotted: str, answers: Answers) -> Symbol | None:
        key = (path, dotted)
        if key not in answers:
            answers[key] = None
            answers[key] = self._resolve(path, dotted, answers)
        return answers[key]

    def _resolve(self, path: str, dotted: str, answers: Answers) -> Symbol | None:
        name = dotted.lstrip(".")
        parts = name.split(".") if name else []
        level = len(dotted) - len(name)
        if level:
            folder = dirname(path)
            for _ in range(level - 1):
                folder = dirname(folder)
            return self._followed(self._package(folder), parts, answers)
        if parts[0] in sys.stdlib_module_names or parts[0] in _LIBRARIES:
            return None
        for folder in self._search_folders(path):
            found = self._followed(Symbol(folder + "/"), parts, answers)
            if found is not None or self._module(folder, parts[0]):
                return found
        return None

    def _followed(self, found: Symbol | None, parts: list[str], answers: Answers) -> Symbol | None:
        for part in parts:
            found = self.member(found, part, answers) if found is not None else None
        return found if found is not None and not found.path.endswith("/") else None

    def _package(self, folder: str) -> Symbol:
        """A folder as what is imported: its `__init__.py`, or itself where it has none."""
        init = join(folder, "__init__.py")
        return Symbol(init if self.files.is_file(init) else folder + "/")

    def _search_folders(self, path: str) -> list[str]:
        """Where absolute imports are looked for: the script's folder and those above it, each with its `src`.

        The folders of a package come last: there, an absolute import does not mean a neighbour.
        """
        root, folder = self.files.root(path), dirname(path)
        folders: list[str] = []
        packages: list[str] = []
        while True:
            if self.files.is_file(join(folder, "__init__.py")):
                packages.append(folder)
            else:
                folders += [folder, join(folder, "src")]
            if folder in {root, dirname(folder)}:
                return folders + packages
            folder = dirname(folder)

    def _module(self, folder: str, name: str) -> str | None:
        """The file of a module in a folder: a package before a plain file."""
        return next((p for p in (join(folder, name, "__init__.py"), join(folder, name + ".py")) if self.files.is_file(p)), None)

    def member(self, owner: Symbol, name: str, answers: Answers | None = None) -> Symbol | None:
        """What a module, class or folder holds under a name."""
        if owner.path.endswith("/"):
            folder = owner.path.rstrip("/")
            return self._submodule(folder, name) or Symbol(join(folder, name) + "/")
        seen, answers = self.outline(owner.path), {} if answers is None else answers
        if owner.name:
            methods = seen.classes[owner.name].methods if owner.name in seen.classes else ()
            return Symbol(owner.path, f"{owner.name}.{name}") if name in methods else None
        if name in seen.others:
            return None
        if name in seen.classes or name in seen.functions:
            return Symbol(owner.path, name)
        if name in seen.imports:
            return _only({self._ask(owner.path, target, answers) for target in seen.imports[name]})
        own = self._submodule(dirname(owner.path), name) if owner.path.endswith("/__init__.py") else None
        return own or self._from_star(owner, seen, name, answers)

    def _submodule(self, folder: str, name: str) -> Symbol | None:
        module = self._module(folder, name)
        return Symbol(module) if module else None

    def _from_star(self, owner: Symbol, seen: Outline, name: str, answers: Answers) -> Symbol | None:
        key = (owner.path, f"*.{name}")
        if key in answers:
            return answers[key]
        answers[key] = None
        modules = [self._ask(owner.path, star, answers) for star in seen.stars]
        found = {self.member(module, name, answers) for module in modules if module is not None and not module.name}
        answers[key] = _only(found - {None})
        return answers[key]

    def class_outline(self, definition: Symbol) -> ClassOutline | None:
        """A class of the project; None for anything else."""
        return self.outline(definition.path).classes.get(definition.name)

    def lineage(self, definition: Symbol) -> Iterator[Symbol | str]:
        """A class, its bases in the project (all generations), and the dotted names of bases from outside."""
        seen: set[Symbol] = set()
        todo = [definition]
        while todo:
            current = todo.pop(0)
            if current in seen:
                continue
            seen.add(current)
            yield current
            for base in self.bases(current):
                if isinstance(base, Symbol):
                    todo.append(base)
                else:
                    yield base

    def constant(self, path: str, dotted: str) -> str | None:
        """The text that a module of the project binds once, at its top level, to what a dotted name refers to."""
        module, _, name = dotted.rpartition(".")
        found = self.resolve(path, module) if module.strip(".") else None
        return self.outline(found.path).constants.get(name) if found is not None and not found.name else None

    def bases(self, definition: Symbol) -> Iterator[Symbol | str]:
        """The direct bases of a class: of the project, or dotted names of others."""
        seen = self.class_outline(definition)
        for name in seen.bases if seen else ():
            own = self.member(Symbol(definition.path), name) if "." not in name else self.resolve(definition.path, name)
            yield own if own is not None and self.class_outline(own) else name


def _only(found: set[Symbol | None]) -> Symbol | None:
    """The one answer; None when there is none, or when answers differ."""
    return next(iter(found)) if len(found) == 1 else None
