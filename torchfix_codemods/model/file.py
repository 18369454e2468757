"""Facts about one file, as questions that a rule's author thinks in; computed when asked, once."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from ..source import Source, SourceError, syntax_tree
from .backflow import Backflow
from .classes import Classes
from .devices import Devices
from .facts import Kind
from .flow import Flow
from .functions import Functions
from .gradients import Gradients
from .identity import Identities
from .index import FUNCTIONS, Index
from .kinds import Kinds
from .leaves import Leaves
from .names import Names
from .origins import Origins
from .project import ALONE, ProjectView
from .reads import Reads
from .roles import Roles
from .training import Training

if TYPE_CHECKING:
    from .facts import Fact
    from .flow import Loop
    from .identity import Identity


def parse(source: Source) -> ast.Module:
    """The file's tree; raises `SourceError` with the line and what is wrong."""
    try:
        return syntax_tree(source.text)
    except SyntaxError as error:
        raise SourceError(source.path, error.lineno or 1, f"not valid Python 3: {error.msg}") from error
    except ValueError as error:
        raise SourceError(source.path, 1, f"not valid Python: {error}") from error
    except (RecursionError, MemoryError):
        raise SourceError(source.path, 1, "nested too deeply to be analysed") from None


class FileModel:
    """One parsed file and everything that rules may ask about it."""

    def __init__(self, source: Source, tree: ast.Module | None = None, view: ProjectView = ALONE) -> None:
        self.source, self.view = source, view
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
        return Classes(self.index, self.names, self.view)

    @cached_property
    def functions(self) -> Functions:
        """Functions of the file, and calls among them."""
        return self.kinds.functions

    @cached_property
    def kinds(self) -> Kinds:
        """What values are."""
        functions = Functions(self.index, self.names, self.flow, self.classes)
        kinds = Kinds(self.index, self.names, self.flow, functions, self.classes, self.view)
        functions.kinds = kinds
        return kinds

    @cached_property
    def gradients(self) -> Gradients:
        """Grad mode and gradient history."""
        return Gradients(self.kinds)

    @cached_property
    def leaves(self) -> Leaves:
        """Which tensors autograd forbids to write in place."""
        return Leaves(self.kinds, self.gradients)

    @cached_property
    def identities(self) -> Identities:
        """Which expressions stand for the same object."""
        return Identities(self.kinds)

    @cached_property
    def devices(self) -> Devices:
        """Which values were moved to a device."""
        return Devices(self.kinds, self.identities)

    @cached_property
    def origins(self) -> Origins:
        """The expressions that values may come from."""
        return Origins(self.kinds)

    @cached_property
    def reads(self) -> Reads:
        """What becomes of values that share memory with another."""
        return Reads(self.kinds)

    @cached_property
    def training(self) -> Training:
        """Events of training and evaluation loops."""
        return Training(self.kinds, self.identities)

    @cached_property
    def backflow(self) -> Backflow:
        """Which values take part in a later backward."""
        return Backflow(self.kinds, self.training)

    @cached_property
    def roles(self) -> Roles:
        """Roles of functions."""
        return Roles(self.kinds, self.training, self.backflow, self.source.path)

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

    def calls_named(self, name: str) -> list[ast.Call]:
        """The calls whose function is written with this name at its end."""
        return [call for call in self.index.all(ast.Call) if name in {getattr(call.func, "attr", ""), getattr(call.func, "id", "")}]

    def attributes(self, name: str) -> list[ast.Attribute]:
        """The uses of an attribute of this name."""
        return [node for node in self.index.all(ast.Attribute) if node.attr == name]

    @property
    def loops(self) -> list[Loop]:
        """Every loop of the file."""
        return [*self.index.all(ast.For), *self.index.all(ast.AsyncFor), *self.index.all(ast.While)]

    def parent(self, node: ast.AST) -> ast.AST:
        """The node directly around another."""
        return self.index.parents[node]

    def scope(self, node: ast.AST) -> str:
        """The names of the functions and classes around a node, outermost first: `Trainer.fit`; empty at the top level."""
        around = [ancestor.name for ancestor in self.flow.ancestors(node) if isinstance(ancestor, (*FUNCTIONS, ast.ClassDef))]
        return ".".join(reversed(around))

    def is_located(self, node: ast.expr | ast.stmt) -> bool:
        """Whether the place that `ast` gives for a node is its own: before Python 3.12, inside some f-strings it is not."""
        if not any(isinstance(ancestor, ast.JoinedStr) for ancestor in self.flow.ancestors(node)):
            return True
        try:
            [statement] = syntax_tree(f"({self.source.code(node)})").body
            return isinstance(statement, ast.Expr) and ast.dump(statement.value) == ast.dump(node)
        except (SyntaxError, ValueError, IndexError):
            return False

    def spelling(self, qualified: str, at: ast.AST) -> str | None:
        """How to write a torch name at a place: through the alias that the file uses; None when `torch` is shadowed there.

        Where `lacks_torch` holds, the fix also has to import torch.
        """
        alias = self._torch_alias
        scope = self.names.visible(alias, at)
        if scope is not None and not all(self.names.import_target(b) == "torch" for b in scope.bindings[alias]):
            return None
        return alias + qualified.removeprefix("torch")

    def lacks_torch(self, at: ast.AST) -> bool:
        """Whether what `spelling` gives isn't bound yet where `at` runs."""
        scope = self.names.visible(self._torch_alias, at)
        if scope is None:
            return True
        line = self.flow.statement(at).lineno
        return all(binding.lineno >= line for binding in scope.bindings[self._torch_alias])  # type: ignore[attr-defined]  # bindings have places

    @cached_property
    def _torch_alias(self) -> str:
        """The name that the module scope knows torch by; `torch` itself when there are several, or none."""
        bindings = self.index.scopes[self.tree].bindings
        aliases = [name for name, nodes in bindings.items() if all(self.names.import_target(node) == "torch" for node in nodes)]
        return aliases[0] if aliases and "torch" not in aliases else "torch"

    def device_at(self, node: ast.AST) -> str | None:
        """The name of a device variable that is sure to be bound at a place: `device`, `dev` or `self.device`."""
        return next((name for name in ("device", "dev") if self._holds_device(name, node)), None) or self._own_device(node)

    def _holds_device(self, name: str, at: ast.AST) -> bool:
        scope = self.names.visible(name, at)
        if scope is None:
            return False
        bindings = scope.bindings[name]
        if len(bindings) != 1:
            return False
        if isinstance(bindings[0], ast.arg):
            return True
        value = self.flow.definition(bindings[0]).value
        fact = self.fact(value) if value is not None else None
        before = bindings[0].lineno < self.flow.statement(at).lineno  # type: ignore[attr-defined]  # bindings have places
        known = fact is not None and fact.kind in {Kind.DEVICE, Kind.TEXT}
        same_function = scope.node is (self.flow.function(at) or self.tree)
        unconditional = self.parent(self.flow.statement(bindings[0])) is scope.node
        return known and unconditional and (before or not same_function)

    def _own_device(self, at: ast.AST) -> str | None:
        definition = self.functions.enclosing_class(at)
        function = self.flow.function(at)
        if definition is None or function is None or self.parent(function) is not definition or function.name == "__init__":  # type: ignore[attr-defined]  # no lambda stands in a class
            return None
        fact = self.classes.attribute(self.kinds, definition, "device")
        return "self.device" if fact is not None and fact.kind in {Kind.DEVICE, Kind.TEXT} else None

    def optimized(self, optimizer: ast.expr) -> Identity | None:
        """The module whose `parameters()` an optimizer was made with, when that is all it has."""
        fact = self.fact(optimizer)
        if fact is None or fact.call is None or not fact.call.args:
            passed = self._passed(optimizer)
            return self.optimized(passed) if passed is not None else None
        given = fact.call.args[0]
        is_parameters = isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters"
        return self.identities.of(given.func.value) if is_parameters else None  # type: ignore[attr-defined]  # just tested

    def _passed(self, parameter: ast.expr) -> ast.expr | None:
        """What the only call in the file passes for a parameter, unless it is that function's own."""
        bindings = self.names.bindings(parameter) if isinstance(parameter, ast.Name) else []
        function = self.parent(bindings[0]) if len(bindings) == 1 and isinstance(bindings[0], ast.arg) else None
        if not isinstance(function, FUNCTIONS) or not isinstance(bindings[0], ast.arg):
            return None
        calls = self.functions.calls_to(function)
        if len(calls) != 1 or self.flow.function(calls[0]) is function:
            return None
        return self.functions.argument(calls[0], function, bindings[0].arg)
