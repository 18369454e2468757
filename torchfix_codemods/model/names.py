"""What a name stands for: imports with aliases and shadowing, and the binding that a use refers to."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from .torch_api import CANONICAL_PREFIXES

if TYPE_CHECKING:
    from .index import Index, Scope

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__spec__", "__loader__", "__builtins__"}


class Names:
    """Name resolution for one file. Whatever is ambiguous resolves to None."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._qualified: dict[ast.AST, str | None] = {}

    def scope_of(self, name: ast.Name) -> Scope | None:
        """The scope that binds what `name` refers to; None when the file doesn't bind it."""
        used_in = self._index.scopes.get(name)
        return used_in.find(name.id) if used_in else None

    def bindings(self, name: ast.Name) -> list[ast.AST]:
        """Every node that binds what `name` refers to, in the scope it belongs to."""
        scope = self.scope_of(name)
        return scope.bindings[name.id] if scope else []

    def qualified(self, node: ast.AST) -> str | None:
        """The full dotted name that an expression refers to through imports or builtins, such as `torch.nn.Linear`.

        None for anything else, and for a name that also has another binding in its scope.
        """
        if node not in self._qualified:
            resolved = self._resolve(node)
            self._qualified[node] = canonical(resolved) if resolved else None
        return self._qualified[node]

    def _resolve(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Attribute):
            owner = self.qualified(node.value)
            return f"{owner}.{node.attr}" if owner else None
        if not isinstance(node, ast.Name):
            return None
        bindings = self.bindings(node)
        if not bindings:
            return f"builtins.{node.id}" if node.id in _BUILTINS and not self.has_star_import else None
        targets = {self.import_target(binding) for binding in bindings}
        return targets.pop() if len(targets) == 1 else None

    def import_target(self, binding: ast.AST) -> str | None:
        """What a binding imports, as a dotted name; None for any other binding."""
        if not isinstance(binding, ast.alias):
            return None
        statement = self._index.parents[binding]
        if isinstance(statement, ast.Import):
            return binding.name if binding.asname else binding.name.split(".")[0]
        assert isinstance(statement, ast.ImportFrom)
        package = "." * statement.level + (statement.module or "")
        return f"{package}.{binding.name}" if statement.module else package + binding.name

    @property
    def has_star_import(self) -> bool:
        """Whether some `from x import *` may bind names that the file does not show."""
        return any(statement.names[0].name == "*" for statement in self._index.all(ast.ImportFrom))

    def imports(self, package: str) -> bool:
        """Whether the file imports `package` or anything below it."""
        names = {alias.name for statement in self._index.all(ast.Import) for alias in statement.names}
        names |= {statement.module or "" for statement in self._index.all(ast.ImportFrom) if not statement.level}
        return any(name == package or name.startswith(package + ".") for name in names)

    def visible(self, name: str, at: ast.AST) -> Scope | None:
        """The scope that `name` would refer to if it were written inside the scope around `at`."""
        node: ast.AST | None = at
        while node is not None and not (node in self._index.scopes and not isinstance(node, ast.Name)):
            node = self._index.parents.get(node)
        return self._index.scopes[node].find(name) if node is not None else None

    def undefined(self) -> set[str]:
        """Names that are read but bound nowhere: not in the file, not a builtin."""
        if self.has_star_import:
            return set()
        loads = (name for name in self._index.all(ast.Name) if isinstance(name.ctx, ast.Load))
        return {name.id for name in loads if name.id not in _BUILTINS and self.scope_of(name) is None}


def canonical(name: str) -> str:
    """The documented spelling of a name that torch also exports from inner modules."""
    if not name.startswith("torch"):
        return name
    for prefix, public in CANONICAL_PREFIXES:
        if name.startswith(prefix):
            return public + name[len(prefix) :].rpartition(".")[2]
    return name
