"""One walk over a file's tree: every node's parent, the nodes of each class, and the scope of every name."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)


@dataclass(eq=False)
class Scope:
    """A region in which names are bound: a module, class, function, lambda or comprehension."""

    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[ast.AST]] = field(default_factory=dict)
    """Name to the nodes that bind it: Name (Store or Del), alias, arg, def, class, except handler, match pattern."""
    declared_outside: dict[str, str] = field(default_factory=dict)
    """Names declared `global` or `nonlocal` here, and which of the two."""

    def bind(self, name: str, node: ast.AST) -> None:
        """Record that `node` binds `name`, in the scope that a `global` or `nonlocal` statement names."""
        target = self.owner_of_declared(name) if name in self.declared_outside else self
        target.bindings.setdefault(name, []).append(node)

    def owner_of_declared(self, name: str) -> Scope:
        """The scope that a name declared `global` or `nonlocal` belongs to."""
        scope = self.module if self.declared_outside[name] == "global" else self.parent
        while scope is not None and self.declared_outside[name] == "nonlocal" and name not in scope.bindings:
            scope = scope.parent
        return scope or self.module

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str) -> Scope | None:
        """The scope whose binding a use of `name` here refers to; class bodies are invisible from inside functions."""
        if name in self.declared_outside:
            owner = self.owner_of_declared(name)
            return owner if name in owner.bindings else None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bindings and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope
            scope = scope.parent
        return None


class Index:
    """Parents, nodes by class in source order, and scopes of one module, made in one walk."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.parents: dict[ast.AST, ast.AST] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        """Scope of each Name node (where it is used), and the inner scope of each scope-making node."""
        self._by_class: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._walk(module)

    def all(self, cls: type[Node]) -> list[Node]:
        """The nodes of exactly this class, in source order."""
        return self._by_class.get(cls, [])  # type: ignore[return-value]  # keyed by the class itself

    def functions(self) -> list[Function]:
        """Every `def` and `async def`."""
        return [*self.all(ast.FunctionDef), *self.all(ast.AsyncFunctionDef)]

    def _walk(self, module: ast.Module) -> None:
        root = Scope(module, None)
        self.scopes[module] = root
        stack: list[tuple[ast.AST, Scope]] = [(module, root)]
        parents, by_class, openers = self.parents, self._by_class, self._openers
        while stack:
            node, scope = stack.pop()
            cls = node.__class__
            by_class[cls].append(node)
            opener = openers.get(cls)
            pairs = opener(self, node, scope) if opener else [(child, scope) for child in children_of(node)]
            for child, _ in pairs:
                parents[child] = node
            pairs.reverse()
            stack.extend(pairs)

    def _name(self, node: ast.Name, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        self.scopes[node] = scope
        if not isinstance(node.ctx, ast.Load):
            self._binding_scope(node, scope).bind(node.id, node)
        return []

    def _binding_scope(self, node: ast.Name, scope: Scope) -> Scope:
        """A walrus inside a comprehension binds in the function around it."""
        if isinstance(self.parents.get(node), ast.NamedExpr):
            while isinstance(scope.node, COMPREHENSIONS) and scope.parent is not None:
                scope = scope.parent
        return scope

    def _function(self, node: Function, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        scope.bind(node.name, node)
        inner = self._open(node, scope)
        _declare(inner, node.body)
        outside = [*node.decorator_list, *_defaults(node.args), *([node.returns] if node.returns else [])]
        arguments = _arguments(node.args)
        for argument in arguments:
            inner.bind(argument.arg, argument)
        return [*((child, scope) for child in [*outside, *arguments]), *((child, inner) for child in node.body)]

    def _lambda(self, node: ast.Lambda, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        inner = self._open(node, scope)
        for argument in _arguments(node.args):
            inner.bind(argument.arg, argument)
        pairs: list[tuple[ast.AST, Scope]] = [(child, scope) for child in _defaults(node.args)]
        pairs += [(child, scope) for child in _arguments(node.args)]
        return [*pairs, (node.body, inner)]

    def _class(self, node: ast.ClassDef, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        scope.bind(node.name, node)
        inner = self._open(node, scope)
        outside = [*node.decorator_list, *node.bases, *node.keywords]
        return [*((child, scope) for child in outside), *((child, inner) for child in node.body)]

    def _comprehension(self, node: ast.ListComp, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        inner = self._open(node, scope)
        return [(child, inner) for child in children_of(node)]

    def _generator(self, node: ast.comprehension, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        first = self.parents[node].generators[0] is node  # type: ignore[attr-defined]  # its parent is a comprehension
        outer = scope.parent if first and scope.parent else scope
        return [(node.iter, outer), *((child, scope) for child in [node.target, *node.ifs])]

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        for alias in node.names:
            name = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
            scope.bind(name, alias)
        return [(alias, scope) for alias in node.names]

    def _handler(self, node: ast.ExceptHandler, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        if node.name:
            scope.bind(node.name, node)
        return [(child, scope) for child in children_of(node)]

    def _pattern(self, node: ast.AST, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        name = getattr(node, "rest", None) if isinstance(node, ast.MatchMapping) else getattr(node, "name", None)
        if name:
            scope.bind(name, node)
        return [(child, scope) for child in children_of(node)]

    def _open(self, node: ast.AST, scope: Scope) -> Scope:
        inner = Scope(node, scope)
        self.scopes[node] = inner
        return inner

    _openers: ClassVar[dict[type[ast.AST], Callable[[Index, Any, Scope], list[tuple[ast.AST, Scope]]]]] = {
        ast.Name: _name,
        ast.FunctionDef: _function,
        ast.AsyncFunctionDef: _function,
        ast.Lambda: _lambda,
        ast.ClassDef: _class,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.DictComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.comprehension: _generator,
        ast.Import: _import,
        ast.ImportFrom: _import,
        ast.ExceptHandler: _handler,
        ast.MatchAs: _pattern,
        ast.MatchStar: _pattern,
        ast.MatchMapping: _pattern,
    }


def children_of(node: ast.AST) -> list[ast.AST]:
    """The child nodes that say something, in source order; several times as fast as `ast.iter_child_nodes`."""
    children: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            children += [child for child in value if isinstance(child, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop)):
            children.append(value)
    return children


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    extra = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default)]


def _declare(scope: Scope, body: list[ast.stmt]) -> None:
    """Record `global` and `nonlocal` before the body is walked: they hold for the whole function."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            word = "global" if isinstance(node, ast.Global) else "nonlocal"
            scope.declared_outside.update(dict.fromkeys(node.names, word))
        elif isinstance(node, ast.stmt) and not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                for child in getattr(node, block, ()):
                    stack += child.body if not isinstance(child, ast.stmt) else [child]
