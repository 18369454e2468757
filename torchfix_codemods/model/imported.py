"""What a file knows of the functions that it imports from its project, and of the files that import its own."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from .index import FUNCTIONS
from .outline import top_level
from .project import Reach
from .project_names import Symbol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Fact, Origin
    from .file import FileModel
    from .kinds import Kinds
    from .project import ProjectView
    from .summary import Behaviour, Step

_CALLING_FILES = 30
"""Files that are asked how they call a function; more say nothing new, and take time."""


class Imported:
    """Calls across the files of a project, from the side of one file."""

    def __init__(self, kinds: Kinds, view: ProjectView) -> None:
        self._kinds, self._view = kinds, view
        self._symbols: dict[ast.Call, Symbol | None] = {}
        self._calls: dict[str, tuple[tuple[FileModel, ast.Call], ...]] = {}
        self._models: dict[str, FileModel | None] = {}

    def function(self, call: ast.Call) -> Symbol | None:
        """The function or method of another file that a call runs."""
        if call not in self._symbols:
            self._symbols[call] = self._function(call.func)
        return self._symbols[call]

    def _function(self, func: ast.expr) -> Symbol | None:
        symbol = self._view.resolve(self._kinds.names.qualified(func))
        if symbol is not None:
            return symbol if symbol.name and self._view.project.class_outline(symbol) is None else None
        if not isinstance(func, ast.Attribute) or self._kinds.names.qualified(func):
            return None
        owner = self._kinds.fact(func.value)
        return self.method(owner.origin, func.attr) if owner is not None and owner.proven else None

    def method(self, origin: Origin, name: str) -> Symbol | None:
        """The method that an instance of a class of another file has under a name."""
        if origin is None or isinstance(origin, (str, ast.ClassDef)):
            return None
        for base in self._view.project.lineage(origin):
            found = self._view.project.member(base, name) if not isinstance(base, str) else None
            if found:
                return found
        return None

    def behaviour(self, symbol: Symbol | None) -> Behaviour | None:
        """What is known of the working of a function of another file."""
        return self._view.project.behaviour(symbol) if symbol and self._view.reach >= Reach.FUNCTIONS else None

    def trace(self, symbol: Symbol) -> tuple[Step, ...]:
        """What happens in a function of another file, and in those that it calls."""
        return self._view.project.trace(symbol) if self._view.reach >= Reach.FUNCTIONS else ()

    def argument(self, call: ast.Call, parameter: str) -> ast.expr | None:
        """The expression that a call of a function of another file passes for a parameter."""
        for keyword in call.keywords:
            if keyword.arg == parameter:
                return keyword.value
        callee = self.behaviour(self.function(call))
        if callee is None or parameter not in callee.parameters or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        position = callee.parameters.index(parameter)
        return call.args[position] if position < len(call.args) else None

    def result(self, call: ast.Call) -> Fact | None:
        """What a call of a function of another file returns."""
        return self._result(self.function(call))

    def output(self, origin: Origin) -> Fact | None:
        """What running an instance of a module class of another file returns."""
        return self._result(self.method(origin, "forward"))

    def _result(self, symbol: Symbol | None) -> Fact | None:
        return self._view.project.result(symbol) if symbol and self._view.reach >= Reach.FUNCTIONS else None

    def callers(self, function: ast.AST | None) -> tuple[tuple[FileModel, ast.Call], ...]:
        """The calls of a top-level function or method of this file in other files, each with the model of its file.

        Calls under another name (`from engine import test as evaluate`) aren't looked for.
        """
        name = self._own_names.get(function)
        if name is None or self._view.reach < Reach.CALLERS:
            return ()
        if name not in self._calls:
            self._calls[name] = tuple(self._calling(Symbol(self._view.path, name)))
        return self._calls[name]

    def _calling(self, symbol: Symbol) -> Iterator[tuple[FileModel, ast.Call]]:
        last = symbol.name.rpartition(".")[2]
        for path in self._view.project.importers(symbol)[:_CALLING_FILES]:
            model = self._model(path, last)
            for call in model.calls_named(last) if model else ():
                if model is not None and model.kinds.imported.function(call) == symbol:
                    yield model, call

    def _model(self, path: str, word: str) -> FileModel | None:
        """Another file, as far as it is known without asking for its own callers; made anew for each file that asks."""
        if path not in self._models:
            self._models[path] = self._view.project.model(path, Reach.FUNCTIONS, word)
        return self._models[path]

    @cached_property
    def _own_names(self) -> dict[ast.AST | None, str]:
        """The functions of this file that others can call, by how these name them."""
        names: dict[ast.AST | None, str] = {}
        for node in top_level(self._kinds.index.module.body):
            if isinstance(node, FUNCTIONS):
                names[node] = node.name
            elif isinstance(node, ast.ClassDef):
                names |= {child: f"{node.name}.{child.name}" for child in node.body if isinstance(child, FUNCTIONS)}
        return names
