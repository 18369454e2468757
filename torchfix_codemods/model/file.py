"""Facts about one file, as questions that a rule's author thinks in; computed when asked, once."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from ..source import Source, SourceError
from .classes import Classes
from .flow import Flow
from .functions import Functions
from .gradients import Gradients
from .identity import Identities
from .index import Index
from .kinds import Kinds
from .names import Names
from .roles import Roles
from .training import Training

if TYPE_CHECKING:
    from .facts import Fact


def parse(source: Source) -> ast.Module:
    """The file's tree; raises `SourceError` with the line and what is wrong."""
    try:
        return ast.parse(source.text)
    except SyntaxError as error:
        raise SourceError(source.path, error.lineno or 1, f"not valid Python 3: {error.msg}") from error
    except ValueError as error:
        raise SourceError(source.path, 1, f"not valid Python: {error}") from error
    except (RecursionError, MemoryError):
        raise SourceError(source.path, 1, "nested too deeply to be analysed") from None


class FileModel:
    """One parsed file and everything that rules may ask about it."""

    def __init__(self, source: Source, tree: ast.Module | None = None) -> None:
        self.source = source
        self.tree = parse(source) if tree is None else tree

    @cached_property
    def index(self) -> Index:
        """Parents, nodes by class, scopes."""
        return Index(self.tree)

    @cached_property
    def names(self) -> Names:
        """Name resolution."""
        return Names(self.index)

    @cached_property
    def flow(self) -> Flow:
        """Order of statements, reaching definitions."""
        return Flow(self.index, self.names)

    @cached_property
    def classes(self) -> Classes:
        """Classes of the file."""
        return Classes(self.index, self.names)

    @cached_property
    def functions(self) -> Functions:
        """Functions of the file, and calls among them."""
        return Functions(self.index, self.names, self.flow, self.classes)

    @cached_property
    def kinds(self) -> Kinds:
        """What values are."""
        kinds = Kinds(self.index, self.names, self.flow, self.functions, self.classes)
        self.functions.kinds = kinds
        return kinds

    @cached_property
    def gradients(self) -> Gradients:
        """Grad mode and gradient history."""
        return Gradients(self.kinds)

    @cached_property
    def identities(self) -> Identities:
        """Which expressions stand for the same object."""
        return Identities(self.kinds)

    @cached_property
    def training(self) -> Training:
        """Events of training and evaluation loops."""
        return Training(self.kinds, self.identities)

    @cached_property
    def roles(self) -> Roles:
        """Roles of functions."""
        return Roles(self.kinds, self.training, self.source.path)

    def qualified(self, node: ast.AST) -> str | None:
        """The dotted name that an expression refers to through imports."""
        return self.names.qualified(node)

    def fact(self, node: ast.expr) -> Fact | None:
        """What is known of an expression's value."""
        return self.kinds.fact(node)

    def calls(self, *qualified: str) -> list[ast.Call]:
        """The calls of any of these library functions, in source order."""
        return [call for call in self.index.all(ast.Call) if self.names.qualified(call.func) in qualified]

    def methods(self, *names: str) -> list[ast.Call]:
        """The calls of a method with one of these names, whatever the receiver."""
        calls = self.index.all(ast.Call)
        return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in names]

    def attributes(self, name: str) -> list[ast.Attribute]:
        """The uses of an attribute of this name."""
        return [node for node in self.index.all(ast.Attribute) if node.attr == name]

    def parent(self, node: ast.AST) -> ast.AST:
        """The node directly around another."""
        return self.index.parents[node]

    def spelling(self, qualified: str, at: ast.AST) -> str | None:
        """How to write a torch name at a place: through the alias that the file uses; None when `torch` is shadowed there.

        The answer starts with `torch.` when the file imports no alias: the fix then needs `NeedImport("torch")`.
        """
        alias = self._torch_alias
        scope = self.names.visible(alias, at)
        if scope is not None and not all(isinstance(b, ast.alias) for b in scope.bindings[alias]):
            return None
        return alias + qualified.removeprefix("torch")

    @cached_property
    def _torch_alias(self) -> str:
        for statement in self.index.all(ast.Import):
            for alias in statement.names:
                if alias.name == "torch" and alias.asname and statement in self.tree.body:
                    return alias.asname
        return "torch"
