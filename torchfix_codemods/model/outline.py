"""The outline of one file: what its top level defines and imports. Made from the text alone, so it can be kept by content."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ..source import Source, SourceError, syntax_tree
from .index import FUNCTIONS
from .names import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KEPT = 4096
"""Outlines that a process keeps; each takes a few kilobytes."""


@dataclass(frozen=True, slots=True)
class ClassOutline:
    """A class, without anything that would need the rest of its file."""

    bases: tuple[str, ...]
    """Dotted names, through the imports of the file; a bare name is one of its own."""
    methods: frozenset[str]
    storing: frozenset[str]
    """The methods that set attributes of their instance."""
    special_buffers: bool = False
    """Whether it names buffers that a state dict doesn't hold."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What other files can see of a file."""

    classes: Mapping[str, ClassOutline] = field(default_factory=dict)
    functions: frozenset[str] = frozenset()
    imports: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name to what it imports: several where a `try` has two imports of it. Relative ones begin with dots."""
    stars: tuple[str, ...] = ()
    """Modules of which everything is imported."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Names that are bound once, to a literal text."""
    others: frozenset[str] = frozenset()
    """Names that are bound in another way, or in more than one."""


@lru_cache(_KEPT)
def outline(data: bytes) -> Outline:
    """The outline of a text; an empty one when it isn't Python 3."""
    try:
        tree = syntax_tree(Source.decode("", data).text)
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return Outline()
    return _Reader().read(tree)


class _Reader:
    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}
        self.stars: list[str] = []
        self.classes: dict[str, ast.ClassDef] = {}
        self.functions: set[str] = set()
        self.constants: dict[str, str] = {}
        self.others: set[str] = set()

    def read(self, tree: ast.Module) -> Outline:
        for statement in top_level(tree.body):
            self._statement(statement)
        named = [set(self.imports), set(self.classes), self.functions, set(self.constants), self.others]
        twice = {name for names in named for name in names if sum(name in other for other in named) > 1}
        return Outline(
            {name: self._class(node) for name, node in self.classes.items() if name not in twice},
            frozenset(self.functions - twice),
            {name: frozenset(targets) for name, targets in self.imports.items() if name not in twice},
            tuple(self.stars),
            {name: value for name, value in self.constants.items() if name not in twice},
            frozenset(self.others | twice),
        )

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                self._import(node, alias)
        elif isinstance(node, ast.ClassDef):
            (self.others.add(node.name) if node.name in self.classes else self.classes.update({node.name: node}))
        elif isinstance(node, FUNCTIONS):
            (self.others if node.name in self.functions else self.functions).add(node.name)
        elif (constant := _constant(node)) and constant[0] not in self.constants:
            self.constants[constant[0]] = constant[1]
        else:
            self.others |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> None:
        if isinstance(node, ast.Import):
            name, target = (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        else:
            package = "." * node.level + (node.module or "")
            if alias.name == "*":
                self.stars.append(package)
                return
            name, target = alias.asname or alias.name, f"{package}.{alias.name}" if node.module else package + alias.name
        self.imports.setdefault(name, set()).add(target)

    def _class(self, node: ast.ClassDef) -> ClassOutline:
        methods = {child.name: child for child in node.body if isinstance(child, FUNCTIONS)}
        bases = tuple(self._dotted(base) for base in node.bases if not isinstance(base, ast.Starred))
        storing = frozenset(name for name, method in methods.items() if stores_on_self(method))
        return ClassOutline(bases, frozenset(methods), storing, has_special_buffers(node))

    def _dotted(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        head, dot, rest = text.partition(".")
        targets = self.imports.get(head, set())
        return canonical(next(iter(targets)) + dot + rest) if len(targets) == 1 else text


def _constant(node: ast.stmt) -> tuple[str, str] | None:
    """`NAME = "text"`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        return (node.targets[0].id, value) if isinstance(value, str) else None
    return None


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, through `if`, `try` and `with`."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for block in ("body", "orelse", "finalbody"):
                yield from top_level(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                yield from top_level(handler.body)
        else:
            yield statement


def has_special_buffers(definition: ast.ClassDef) -> bool:
    """Whether a class registers buffers with `persistent=`: a state dict may not hold them."""
    return any(isinstance(node, ast.keyword) and node.arg == "persistent" for node in ast.walk(definition))


def stores_on_self(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method sets an attribute of its instance."""
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"
        for node in ast.walk(function)
    )
