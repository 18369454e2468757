"""Order inside a function: which block a statement stands in, and which bindings may reach a use."""

from __future__ import annotations

import ast
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .index import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .index import Index
    from .names import Names

LOOPS = (ast.For, ast.AsyncFor, ast.While)
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_BLOCKS = ("body", "orelse", "finalbody")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Form(Enum):
    """How a binding gives a name its value."""

    ASSIGNED = auto()
    AUGMENTED = auto()
    ITERATED = auto()
    ENTERED = auto()
    PARAMETER = auto()
    IMPORTED = auto()
    DEFINED = auto()
    OTHER = auto()


class Definition(NamedTuple):
    """A binding with the expression it takes its value from, and the path into that value when it is unpacked."""

    form: Form
    value: ast.expr | None = None
    path: tuple[int, ...] = ()


class Place(NamedTuple):
    """Where a statement stands: its block, and its place in it."""

    block: list[ast.stmt]
    number: int


class Flow:
    """Questions about the order of statements in one file."""

    def __init__(self, index: Index, names: Names) -> None:
        self._index = index
        self._names = names
        self._places: dict[ast.AST, Place] = {}
        self._reaching: dict[ast.Name, list[ast.AST]] = {}

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement around a node (the node itself, if it is one)."""
        while not isinstance(node, ast.stmt):
            node = self._index.parents[node]
        return node

    def place(self, statement: ast.stmt) -> Place:
        """The block of a statement, and its index there."""
        if not self._places:
            for node in (self._index.module, *self._index.parents):
                for name in _BLOCKS:
                    block = getattr(node, name, None)
                    if isinstance(block, list):
                        self._places.update((child, Place(block, i)) for i, child in enumerate(block))
        return self._places[statement]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        parent = self._index.parents.get(node)
        while parent is not None:
            yield parent
            parent = self._index.parents.get(parent)

    def parent(self, node: ast.AST) -> ast.AST:
        """The node directly around another."""
        return self._index.parents[node]

    def function(self, node: ast.AST) -> ast.AST | None:
        """The innermost function or lambda around a node; None at module or class level."""
        return next((a for a in self.ancestors(node) if isinstance(a, (*FUNCTIONS, ast.Lambda))), None)

    def loops(self, node: ast.AST) -> list[Loop]:
        """The loops whose body a node stands in, innermost first, within its own function."""
        loops: list[Loop] = []
        child = node
        for parent in self.ancestors(node):
            if isinstance(parent, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
                break
            if isinstance(parent, LOOPS) and child in parent.body:
                loops.append(parent)
            child = parent
        return loops

    def definition(self, binding: ast.AST) -> Definition:
        """What a binding node gives its name."""
        if isinstance(binding, ast.Name):
            return self._name_definition(binding)
        if isinstance(binding, ast.arg):
            return Definition(Form.PARAMETER)
        if isinstance(binding, ast.alias):
            return Definition(Form.IMPORTED)
        return Definition(Form.DEFINED if isinstance(binding, (*FUNCTIONS, ast.ClassDef)) else Form.OTHER)

    def _name_definition(self, name: ast.Name) -> Definition:
        path: list[int] = []
        child, parent = name, self._index.parents[name]
        while isinstance(parent, (ast.Tuple, ast.List)):
            if any(isinstance(element, ast.Starred) for element in parent.elts):
                return Definition(Form.OTHER)
            path.insert(0, parent.elts.index(child))
            child, parent = parent, self._index.parents[parent]  # type: ignore[assignment]  # targets are expressions
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return _unpack(Definition(Form.ASSIGNED, parent.value, tuple(path)))
        if isinstance(parent, ast.AugAssign):
            return Definition(Form.AUGMENTED, parent.value)
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
            return Definition(Form.ITERATED, parent.iter, tuple(path))
        if isinstance(parent, ast.withitem):
            return Definition(Form.ENTERED, parent.context_expr, tuple(path))
        return Definition(Form.OTHER)

    def reaching(self, name: ast.Name) -> list[ast.AST]:
        """The bindings whose value a use of `name` may see: never too few, sometimes too many."""
        if name not in self._reaching:
            self._reaching[name] = self._reach(name)
        return self._reaching[name]

    def _reach(self, name: ast.Name) -> list[ast.AST]:
        scope = self._names.scope_of(name)
        if scope is None:
            return []
        bindings = scope.bindings[name.id]
        user = self.function(name) or self._index.module
        if len(bindings) == 1 or scope.node is not user or isinstance(user, ast.Lambda):
            return bindings
        return self._before(self.statement(name), bindings)

    def _before(self, statement: ast.stmt, bindings: list[ast.AST]) -> list[ast.AST]:
        found: list[ast.AST] = []
        node: ast.AST = statement
        while True:
            if isinstance(node, ast.stmt):
                block, index = self.place(node)
                before, definite = self._last(block[:index], bindings)
                found += before
                if definite:
                    break
            parent = self._index.parents[node]
            before, definite = self._around(node, parent, bindings)
            found += before
            if definite:
                break
            node = parent
        return list(dict.fromkeys(found))

    def _around(self, node: ast.AST, parent: ast.AST, bindings: list[ast.AST]) -> tuple[list[ast.AST], bool]:
        """Bindings that reach the start of the block that `node` stands in; and whether none before can."""
        if isinstance(parent, (*FUNCTIONS, ast.Module, ast.ClassDef, ast.Lambda)):
            return [b for b in bindings if isinstance(b, ast.arg)], True
        if isinstance(parent, (ast.For, ast.AsyncFor)) and node in parent.body:
            own = [b for b in bindings if _within(b, parent.target)]
            return own or _inside(bindings, parent.body), bool(own)
        if isinstance(parent, LOOPS):
            return _inside(bindings, parent.body), False
        if isinstance(parent, (ast.With, ast.AsyncWith)):
            own = [b for item in parent.items if item.optional_vars for b in bindings if _within(b, item.optional_vars)]
            return own, bool(own)
        if isinstance(parent, ast.Try) and node not in parent.body:
            earlier = [*parent.body, *(s for h in parent.handlers if h is not node for s in h.body)]
            return _inside(bindings, earlier), False
        if isinstance(parent, ast.ExceptHandler):
            return [b for b in bindings if b is parent], any(b is parent for b in bindings)
        return [], False

    def _last(self, block: list[ast.stmt], bindings: list[ast.AST]) -> tuple[list[ast.AST], bool]:
        """The bindings left standing after a block, and whether one of them is sure to have happened."""
        found: list[ast.AST] = []
        for statement in reversed(block):
            inside = _inside(bindings, [statement])
            before, definite = self._of(statement, inside) if inside else ([], False)
            found += before
            if definite:
                return found, True
        return found, False

    def _of(self, statement: ast.stmt, inside: list[ast.AST]) -> tuple[list[ast.AST], bool]:
        if isinstance(statement, ast.If):
            branches = [self._branch(statement.body, inside), self._branch(statement.orelse, inside)]
            return [b for found, _ in branches for b in found], all(definite for _, definite in branches)
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            found, definite = self._last(statement.body, inside)
            own = [b for b in inside if not any(_within(b, child) for child in statement.body)]
            return (found if definite else [*found, *own]), definite or bool(own)
        if isinstance(statement, ast.Try):
            _, finally_definite = self._last(statement.finalbody, inside)
            return inside, finally_definite
        if isinstance(statement, (*LOOPS, ast.Match)):
            return inside, False
        if isinstance(statement, ast.AnnAssign) and statement.value is None:
            return [], False
        walrus = all(isinstance(self._index.parents.get(b), ast.NamedExpr) for b in inside)
        return inside, not walrus

    def _branch(self, block: list[ast.stmt], inside: list[ast.AST]) -> tuple[list[ast.AST], bool]:
        return ([], True) if leaves(block) else self._last(block, inside)


def catches(handler: ast.ExceptHandler, *names: str) -> bool:
    """Whether an exception handler catches errors of one of these names, by name or as any exception."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(error).rpartition(".")[2] in {*names, "Exception", "BaseException"} for error in caught)


def leaves(block: list[ast.stmt]) -> bool:
    """Whether control never reaches the end of a block."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return leaves(last.body) and leaves(last.orelse)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return leaves(last.body)
    return isinstance(last, _LEAVES)


def _unpack(definition: Definition) -> Definition:
    """Follow the path into a literal tuple: `a, b = f(), g()` defines `b` by `g()`."""
    form, value, path = definition
    while path and isinstance(value, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in value.elts):
        if path[0] >= len(value.elts):
            break
        value, path = value.elts[path[0]], path[1:]
    return Definition(form, value, path)


def _within(node: ast.AST, outer: ast.AST) -> bool:
    """Whether a node's text lies inside another's (both of one file)."""
    line: int = node.lineno  # type: ignore[attr-defined]  # bindings and statements have places
    if line < outer.lineno or line > outer.end_lineno:  # type: ignore[attr-defined]  # the same
        return False
    start, end = (line, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]  # the same
    return (outer.lineno, outer.col_offset) <= start and end <= (outer.end_lineno, outer.end_col_offset)  # type: ignore[attr-defined]  # the same


def _inside(bindings: list[ast.AST], statements: Iterable[ast.AST]) -> list[ast.AST]:
    return [b for s in statements for b in bindings if _within(b, s)]
