"""The project around a file: its names, what its functions do and return, and who calls them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ..source import Source, SourceError
from .project_names import Files, ProjectNames, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from .facts import Fact
    from .file import FileModel
    from .summary import Behaviour, Onward, Step

_DEPTH = 3
"""Files that a question about what happens in a function follows calls into."""


class Reach(IntEnum):
    """How much a file may ask of others. What one file is asked never leads further than the level below: no circles."""

    NAMES = 0
    """What their names refer to."""
    FUNCTIONS = 1
    """What their functions do, too."""
    CALLERS = 2
    """And who calls its own functions."""


class Project(ProjectNames):
    """A project: every answer depends on its files alone, and not on what was asked before."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self._behaviours: dict[str, Mapping[str, Behaviour]] = {}
        self._results: dict[str, Mapping[str, Fact]] = {}
        self._traces: dict[tuple[Symbol, int], tuple[Step, ...]] = {}
        self._tables: dict[tuple[str, str], frozenset[Hashable]] = {}

    def model(self, path: str, reach: Reach, word: str = "") -> FileModel | None:
        """A file of the project; None when it isn't Python, or doesn't hold a word."""
        from .file import FileModel

        data = self.files.read(path)
        if data is None or word.encode() not in data:
            return None
        try:
            return FileModel(Source.decode(path, data), view=ProjectView(self, path, reach))
        except SourceError:
            return None

    def table(self, path: str, name: str, build: Callable[[FileModel], frozenset[Hashable]]) -> frozenset[Hashable]:
        """What a builder of some name finds in a file of the project, found once."""
        if (path, name) not in self._tables:
            model = self.model(path, Reach.FUNCTIONS)
            self._tables[path, name] = build(model) if model else frozenset()
        return self._tables[path, name]

    def behaviour(self, symbol: Symbol) -> Behaviour | None:
        """What a function of the project does, as its callers see it."""
        if symbol.path not in self._behaviours:
            from .summary import behaviours

            # A model of its own for each table: what else was asked before must not matter.
            model = self.model(symbol.path, Reach.NAMES)
            self._behaviours[symbol.path] = behaviours(model) if model else {}
        return self._behaviours[symbol.path].get(symbol.name)

    def result(self, symbol: Symbol) -> Fact | None:
        """What a function of the project returns."""
        if symbol.path not in self._results:
            from .summary import results

            model = self.model(symbol.path, Reach.NAMES)
            self._results[symbol.path] = results(model) if model else {}
        return self._results[symbol.path].get(symbol.name)

    def trace(self, symbol: Symbol, depth: int = _DEPTH) -> tuple[Step, ...]:
        """What happens in a function, and in those of other files that it calls."""
        key = (symbol, depth)
        if key not in self._traces:
            own = self.behaviour(symbol)
            steps = [inner for step in own.trace for inner in self._expanded(step, depth)] if own else []
            self._traces[key] = tuple(steps)
        return self._traces[key]

    def _expanded(self, step: Step | Onward, depth: int) -> Sequence[Step]:
        from .summary import Step, substituted

        if isinstance(step, Step):
            return [step]
        callee = self.behaviour(step.symbol)
        if not depth or callee is None:
            return []
        passed = {name: step.arguments.get(name, step.arguments.get(i)) for i, name in enumerate(callee.parameters)}
        inner = [substituted(other, passed, step.records) for other in self.trace(step.symbol, depth - 1)]
        return [other for other in inner if isinstance(other, Step)]

    def importers(self, symbol: Symbol) -> Sequence[str]:
        """The files whose imports may lead to a class or function: those that name it, its module, or a package around it."""
        root = self.files.root(symbol.path)
        inside = symbol.path.removeprefix(root).removesuffix(".py").split("/")
        words = frozenset({symbol.name.partition(".")[0], *inside} - {"", "__init__", "src"})
        return [path for path in self.files.importers(root, words) if path != symbol.path]


class ProjectView(NamedTuple):
    """A project as one of its files sees it."""

    project: Project
    path: str
    reach: Reach = Reach.CALLERS

    def resolve(self, dotted: str | None) -> Symbol | None:
        """What a dotted name of the file's imports refers to in the project."""
        return self.project.resolve(self.path, dotted) if dotted and self.path else None

    def symbol(self, name: str) -> Symbol | None:
        """A class or function at the top level of the file itself, as other files know it."""
        return Symbol(self.path, name) if self.path else None

    def constant(self, dotted: str | None) -> str | None:
        """The text that a dotted name of the file's imports stands for."""
        return self.project.constant(self.path, dotted) if dotted and self.path else None


class _NoFiles:
    """A project of nothing: for a text that stands alone."""

    def read(self, _: str) -> bytes | None:
        return None

    def is_file(self, _: str) -> bool:
        return False

    def root(self, path: str) -> str:
        return path

    def importers(self, _root: str, _words: frozenset[str]) -> Sequence[str]:
        return ()

    def containing(self, _root: str, _text: bytes) -> Sequence[str]:
        return ()


ALONE = ProjectView(Project(_NoFiles()), "")
"""The view of a file of which nothing but its text is known."""
