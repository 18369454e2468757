"""Infer what an expression's value is, from constructors, methods, definitions and call sites."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import torch_api as api
from .arithmetic import arithmetic, tensor_attribute
from .call_kinds import called, element_of_call
from .definition_kinds import augmented, defined
from .facts import NUMBER, OTHER, PARAMETER, SEQUENCE, TENSOR, TEXT, UNDECIDED, Fact, Kind, join
from .flow import Form
from .imported import Imported
from .index import FUNCTIONS
from .narrowing import narrowed
from .occurrences import Occurrences
from .usage import used_as_tensor, used_nearby

if TYPE_CHECKING:
    from collections.abc import Callable

    from .classes import Classes
    from .flow import Flow
    from .functions import Functions
    from .index import Index
    from .names import Names
    from .project import ProjectView

_DEPTH_LIMIT = 40
"""Nested questions after which the answer is unknown: real chains are far shorter."""
_WORK_LIMIT = 300
"""Questions that one question may lead to before its answer is unknown: circular code would otherwise explode."""


class Kinds(Occurrences):
    """The facts about expressions of one file. Never guesses: what isn't known is None."""

    def __init__(self, index: Index, names: Names, flow: Flow, functions: Functions, classes: Classes, view: ProjectView) -> None:
        super().__init__(index, names)
        self.flow, self.functions, self.classes = flow, functions, classes
        self.imported = Imported(self, view)
        self._known: dict[ast.AST, Fact | None] = {}
        self._asked: set[ast.AST] = set()
        self._parts: set[tuple[ast.expr, tuple[int | None, ...]]] = set()
        self._circular = False
        self._work = 0

    def fact(self, node: ast.expr | ast.arg | None) -> Fact | None:
        """What is known of an expression's (or parameter's) value."""
        if node is None:
            return None
        if node in self._known:
            return self._known[node]
        if node in self._asked:
            self._circular = True
            return UNDECIDED
        if not self._asked:
            self._work = 0
        self._work += 1
        if len(self._asked) > _DEPTH_LIMIT or self._work > _WORK_LIMIT:
            self._circular = True
            return None
        return self._ask(node)

    def _ask(self, node: ast.expr | ast.arg) -> Fact | None:
        outer, self._circular = self._circular, False
        self._asked.add(node)
        fact = self._infer(node)
        self._asked.discard(node)
        # An answer that leaned on a question still open holds only inside that question.
        if not self._circular or not self._asked:
            if fact is UNDECIDED:
                fact = None
            self._known[node] = fact
            self._circular = outer
        return fact

    def _infer(self, node: ast.expr | ast.arg) -> Fact | None:
        handler: Callable[[Kinds, Any], Fact | None] | None = _HANDLERS.get(type(node))
        return handler(self, node) if handler else None

    def is_kind(self, node: ast.expr, *kinds: Kind) -> bool:
        """Whether the value is proven to be of one of these kinds."""
        fact = self.fact(node)
        return fact is not None and fact.proven and fact.kind in kinds

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether the value is proven to be a tensor of any sort."""
        fact = self.fact(node)
        return fact is not None and fact.proven and fact.is_tensor

    def _constant(self, node: ast.Constant) -> Fact | None:
        if node.value is None:
            return UNDECIDED
        if isinstance(node.value, (int, float, complex)):
            return NUMBER
        return TEXT if isinstance(node.value, (str, bytes)) else OTHER

    def _name(self, node: ast.Name) -> Fact | None:
        if isinstance(node.ctx, ast.Store):
            return augmented(self, node)
        if self.names.qualified(node):
            return None
        bindings = self.flow.reaching(node)
        facts = [defined(self, binding) for binding in bindings]
        fact = join(facts) if facts else None
        if fact is not None and fact.proven:
            return fact
        return narrowed(self, node) or self._shown_by_use(node, bindings) or fact

    def _shown_by_use(self, node: ast.Name, bindings: list[ast.AST]) -> Fact | None:
        if not bindings or any(isinstance(binding, (ast.alias, *FUNCTIONS, ast.ClassDef)) for binding in bindings):
            return None
        fact = used_nearby(self, node)
        known_forms = all(self.flow.definition(b).form in {Form.ASSIGNED, Form.PARAMETER} for b in bindings)
        return fact or (TENSOR if known_forms and used_as_tensor(self, node) else None)

    @cached_property
    def packs_sequences(self) -> bool:
        """Whether the file makes a PackedSequence anywhere."""
        functions = (self.names.qualified(call.func) for call in self.index.all(ast.Call))
        return any(name in api.PACKED_SEQUENCE_FUNCTIONS for name in functions)

    def _attribute(self, node: ast.Attribute) -> Fact | None:
        if self.names.qualified(node):
            return None
        fact = self._attribute_of(self.fact(node.value), node)
        unknown = fact is None or not fact.proven
        return (used_nearby(self, node) or fact) if unknown and isinstance(node.value, ast.Name) else fact

    def _attribute_of(self, owner: Fact | None, node: ast.Attribute) -> Fact | None:
        if owner is None or owner is UNDECIDED:
            return owner
        if owner.is_tensor:
            return tensor_attribute(owner, node.attr)
        if isinstance(owner.origin, ast.ClassDef):
            fact = self.classes.attribute(self, owner.origin, node.attr)
            if fact is not None:
                return fact if owner.proven else fact.likely()
        if owner.kind is Kind.MODULE:
            return self._module_attribute(owner, node.attr)
        return None

    def _module_attribute(self, owner: Fact, name: str) -> Fact | None:
        if name not in {"weight", "bias"} and not name.startswith(("weight_ih", "weight_hh", "bias_ih", "bias_hh")):
            return Fact(Kind.MODULE, proven=owner.proven, wrapped=False) if owner.wrapped and name == "module" else None
        if isinstance(owner.origin, str) and owner.origin.startswith(api.LAZY_LAYERS):
            # Before its first forward such a parameter has no storage, and nearly every operation on it raises.
            return OTHER
        own_class = isinstance(owner.origin, ast.ClassDef) and self.classes.assigns(owner.origin, name)
        return None if own_class or self.classes.outlines(owner.origin) else PARAMETER if owner.proven else PARAMETER.likely()

    def _call(self, node: ast.Call) -> Fact | None:
        return called(self, node)

    def _binary(self, node: ast.BinOp) -> Fact | None:
        return arithmetic(self.fact(node.left), self.fact(node.right))

    def _unary(self, node: ast.UnaryOp) -> Fact | None:
        fact = self.fact(node.operand)
        if fact is not None and fact.kind is Kind.PARAMETER:
            return TENSOR
        return NUMBER if isinstance(node.op, ast.Not) else fact

    def _compare(self, node: ast.Compare) -> Fact | None:
        if len(node.ops) != 1 or isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return NUMBER
        return arithmetic(self.fact(node.left), self.fact(node.comparators[0]))

    def _subscript(self, node: ast.Subscript) -> Fact | None:
        owner = self.fact(node.value)
        if owner is None:
            return self.element(node.value, (_constant_index(node.slice),)) if _constant_index(node.slice) is not None else None
        if owner.is_tensor:
            return TENSOR if owner.proven else TENSOR.likely()
        if owner.kind is Kind.PAIR:
            return TENSOR
        index = _constant_index(node.slice)
        if owner.kind is Kind.MODULE and owner.origin == "torch.nn.Sequential" and owner.call and index is not None:
            arguments = owner.call.args
            return self.fact(arguments[index]) if -len(arguments) <= index < len(arguments) else None
        return self.element(node.value, (index,)) if index is not None else None

    def element(self, node: ast.expr, path: tuple[int | None, ...]) -> Fact | None:
        """What a part of a tuple-like value is: `path` holds the indices, from the outside in."""
        if not path:
            return self.fact(node)
        if (node, path) in self._parts or len(self._parts) > _DEPTH_LIMIT:
            return None
        self._parts.add((node, path))
        try:
            return self._element(node, path)
        finally:
            self._parts.discard((node, path))

    def _element(self, node: ast.expr, path: tuple[int | None, ...]) -> Fact | None:
        index, rest = path[0], path[1:]
        if isinstance(node, (ast.Tuple, ast.List)) and index is not None and -len(node.elts) <= index < len(node.elts):
            return self.element(node.elts[index], rest)
        if isinstance(node, ast.Name):
            forms = [self.flow.definition(b) for b in self.flow.reaching(node)]
            if len(forms) == 1 and forms[0].form is Form.ASSIGNED and forms[0].value is not None:
                return self.element(forms[0].value, (*forms[0].path, *path))
        if isinstance(node, ast.Call):
            return element_of_call(self, node, index, rest)
        return None

    def _choice(self, node: ast.IfExp) -> Fact | None:
        return join([self.fact(node.body), self.fact(node.orelse)])

    def _named(self, node: ast.NamedExpr) -> Fact | None:
        return self.fact(node.value)

    def _text(self, _: ast.expr) -> Fact | None:
        return TEXT

    def _sequence(self, _: ast.expr) -> Fact | None:
        return SEQUENCE

    def _parameter(self, node: ast.arg) -> Fact | None:
        return defined(self, node)


def _constant_index(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant_index(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


_HANDLERS: dict[type[ast.AST], Callable[[Kinds, Any], Fact | None]] = {
    ast.Constant: Kinds._constant,
    ast.Name: Kinds._name,
    ast.Attribute: Kinds._attribute,
    ast.Call: Kinds._call,
    ast.BinOp: Kinds._binary,
    ast.UnaryOp: Kinds._unary,
    ast.Compare: Kinds._compare,
    ast.Subscript: Kinds._subscript,
    ast.IfExp: Kinds._choice,
    ast.NamedExpr: Kinds._named,
    ast.JoinedStr: Kinds._text,
    ast.Tuple: Kinds._sequence,
    ast.List: Kinds._sequence,
    ast.Dict: Kinds._sequence,
    ast.Set: Kinds._sequence,
    ast.ListComp: Kinds._sequence,
    ast.DictComp: Kinds._sequence,
    ast.SetComp: Kinds._sequence,
    ast.GeneratorExp: Kinds._sequence,
    ast.arg: Kinds._parameter,
}
