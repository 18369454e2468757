"""Facts about the classes of a file: what they descend from, their methods, and what their attributes hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from . import torch_api as api
from .facts import TENSOR, Fact, join
from .index import FUNCTIONS
from .outline import stores_on_self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Origin
    from .index import Function, Index
    from .kinds import Kinds
    from .names import Names
    from .outline import ClassOutline
    from .project import ProjectView
    from .project_names import Symbol


class Classes:
    """The classes defined in one file."""

    def __init__(self, index: Index, names: Names, view: ProjectView) -> None:
        self._index, self._names, self._view = index, names, view
        self._attributes: dict[ast.ClassDef, dict[str, list[ast.expr]]] = {}

    def resolve(self, node: ast.expr) -> ast.ClassDef | None:
        """The one class of this file that an expression names."""
        if isinstance(node, ast.Name):
            bindings = self._names.bindings(node)
            if len(bindings) == 1 and isinstance(bindings[0], ast.ClassDef):
                return bindings[0]
        return None

    def lineage(self, definition: ast.ClassDef) -> Iterator[ast.ClassDef | str]:
        """The class, its bases in this file (all generations), and the dotted names of bases from outside.

        A base from another file of the project comes with the names of its own bases.
        """
        seen: set[ast.ClassDef] = set()
        todo = [definition]
        while todo:
            current = todo.pop(0)
            if current in seen:
                continue
            seen.add(current)
            yield current
            for base in current.bases:
                own = self.resolve(base)
                if own:
                    todo.append(own)
                else:
                    yield from self._outside(self._names.qualified(base) or ast.unparse(base))

    def _outside(self, name: str) -> Iterator[str]:
        yield name
        definition = self.imported(name)
        for base in self._view.project.lineage(definition) if definition else ():
            yield base if isinstance(base, str) else base.name

    def imported(self, name: str | None) -> Symbol | None:
        """The class of another file of the project that a dotted name refers to."""
        definition = self._view.resolve(name)
        return definition if definition and self._view.project.class_outline(definition) else None

    def origins(self, origin: Origin) -> Iterator[str]:
        """The dotted names of the library classes that a class (of any file) descends from."""
        lineage = self.lineage(origin) if isinstance(origin, ast.ClassDef) else self._lineage_elsewhere(origin)
        yield from (base for base in lineage if isinstance(base, str))

    def _lineage_elsewhere(self, origin: str | Symbol | None) -> Iterator[str]:
        if isinstance(origin, str):
            yield origin
        elif origin is not None:
            yield from (base for base in self._view.project.lineage(origin) if isinstance(base, str))

    def has_method(self, origin: Origin, name: str) -> bool:
        """Whether a class, or a base of it in the project, defines a method itself."""
        if isinstance(origin, ast.ClassDef):
            if self.method(origin, name):
                return True
            outside = [self.imported(base) for base in self.lineage(origin) if isinstance(base, str)]
            return any(definition and self.has_method(definition, name) for definition in outside)
        return any(name in seen.methods for seen in self.outlines(origin))

    def outlines(self, origin: Origin) -> list[ClassOutline]:
        """The outlines of a class of another file, and of its bases in the project; none for other origins."""
        if origin is None or isinstance(origin, (str, ast.ClassDef)):
            return []
        project = self._view.project
        found = [project.class_outline(base) for base in project.lineage(origin) if not isinstance(base, str)]
        return [seen for seen in found if seen is not None]

    def keeps_state(self, origin: Origin, name: str) -> bool:
        """Whether a method stores something on its instance."""
        if isinstance(origin, ast.ClassDef):
            method = self.method(origin, name)
            if method is not None:
                return stores_on_self(method)
            outside = [self.imported(base) for base in self.lineage(origin) if isinstance(base, str)]
            return any(definition is not None and self.keeps_state(definition, name) for definition in outside)
        return any(name in seen.storing for seen in self.outlines(origin))

    def is_module(self, definition: ast.ClassDef | Symbol) -> bool:
        """Whether the class is proven to descend from `torch.nn.Module`."""
        return any(base.startswith("torch.nn.") for base in self.origins(definition))

    def is_optimizer(self, definition: ast.ClassDef | Symbol) -> bool:
        """Whether the class is proven to descend from `torch.optim.Optimizer`."""
        return any(base in api.OPTIMIZERS for base in self.origins(definition))

    def is_framework(self, definition: ast.ClassDef) -> bool:
        """Whether a training framework runs the class: it then manages mode, gradients and devices."""
        for base in self.lineage(definition):
            last = base.name if isinstance(base, ast.ClassDef) else base.rpartition(".")[2]
            # Only the bases count: a file's own class may be called Trainer without descending from one.
            if base is not definition and (last in api.FRAMEWORK_BASES or last.endswith("Strategy")):
                return True
        methods = {child.name for child in definition.body if isinstance(child, FUNCTIONS)}
        return bool(methods & api.FRAMEWORK_HOOKS)

    def method(self, definition: ast.ClassDef, name: str) -> Function | None:
        """The method that `instance.name` finds in this file's classes."""
        for base in self.lineage(definition):
            if isinstance(base, ast.ClassDef):
                for child in base.body:
                    if isinstance(child, FUNCTIONS) and child.name == name:
                        return child
        return None

    def owner(self, function: ast.AST) -> ast.ClassDef | None:
        """The class whose body a function stands in directly."""
        parent = self._index.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def values(self, definition: ast.ClassDef, attribute: str) -> list[ast.expr]:
        """Every expression that the class (or a base in this file) assigns to `self.attribute`."""
        found: list[ast.expr] = []
        for base in self.lineage(definition):
            if isinstance(base, ast.ClassDef):
                found += self._assigned(base).get(attribute, [])
        return found

    def assigns(self, definition: ast.ClassDef, attribute: str) -> bool:
        """Whether the class (or a base in this file) sets the attribute on itself."""
        return bool(self.values(definition, attribute))

    def attribute(self, kinds: Kinds, definition: ast.ClassDef, name: str) -> Fact | None:
        """What `instance.name` holds, when all of the class's assignments agree."""
        values = self.values(definition, name)
        return join([TENSOR if _is_buffer(value) else kinds.fact(value) for value in values]) if values else None

    def _assigned(self, definition: ast.ClassDef) -> dict[str, list[ast.expr]]:
        if definition not in self._attributes:
            found: dict[str, list[ast.expr]] = {}
            for node in ast.walk(definition):
                for name, value in _assignments(node):
                    found.setdefault(name, []).append(value)
            self._attributes[definition] = found
        return self._attributes[definition]


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _targets(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value:
        yield from _targets(node.target, node.value)
    elif isinstance(node, ast.AugAssign):
        yield from _targets(node.target, ast.BinOp(node.target, node.op, node.value))
    elif isinstance(node, ast.Call) and _is_buffer(node) and len(node.args) > 1 and isinstance(node.args[0], ast.Constant):
        yield str(node.args[0].value), node


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
        for i, element in enumerate(target.elts):
            # An unpacked call: the attribute is set, to something that no rule knows.
            yield from _targets(element, elements[i] if elements else ast.Name("?", ast.Load()))
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        yield target.attr, value


def _is_buffer(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register_buffer"
