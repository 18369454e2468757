"""What a binding gives its name: by assignment, iteration, unpacking, or as a parameter."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .facts import NUMBER, OTHER, PARAMETER, SCALAR, SEQUENCE, TENSOR, UNDECIDED, Fact, Kind, join
from .flow import Form
from .parameter_kinds import parameter

if TYPE_CHECKING:
    from .kinds import Kinds

_ITERATED_METHODS = {"parameters": PARAMETER, "buffers": TENSOR, "modules": Fact(Kind.MODULE), "children": Fact(Kind.MODULE)}
_ITERATED_PAIRS = {
    "named_parameters": PARAMETER,
    "named_buffers": TENSOR,
    "named_modules": Fact(Kind.MODULE),
    "named_children": Fact(Kind.MODULE),
}


def defined(kinds: Kinds, binding: ast.AST) -> Fact | None:
    """What is known of a name right after `binding` has happened."""
    form, value, path = kinds.flow.definition(binding)
    if form is Form.PARAMETER and isinstance(binding, ast.arg):
        return parameter(kinds, binding)
    if value is None:
        return None
    if form is Form.ASSIGNED:
        return kinds.element(value, path) if path else kinds.fact(value)
    if form is Form.AUGMENTED and isinstance(binding, ast.Name):
        return kinds.fact(binding)
    if form is Form.ITERATED:
        return iterated(kinds, value, path)
    if form is Form.ENTERED:
        return OTHER if kinds.names.qualified(getattr(value, "func", value)) == "builtins.open" else None
    return None


def augmented(kinds: Kinds, binding: ast.Name) -> Fact | None:
    """What `binding` holds after its augmented assignment."""
    value = kinds.flow.definition(binding).value
    before = [defined(kinds, b) for b in kinds.flow.reaching(binding) if b is not binding]
    old, added = join(before) if before else None, kinds.fact(value)
    if old is UNDECIDED:
        return added
    if old is None or added is None:
        return None
    if old.kind is Kind.NUMBER or old.is_tensor:
        scalar = {old.kind, added.kind} <= {Kind.NUMBER, Kind.SCALAR_TENSOR}
        if old.kind is Kind.NUMBER and added.kind is Kind.NUMBER:
            return NUMBER
        if not (added.is_tensor or added.kind is Kind.NUMBER):
            return None
        return SCALAR if scalar else TENSOR
    return old if old.kind is added.kind else None


def iterated(kinds: Kinds, value: ast.expr, path: tuple[int, ...]) -> Fact | None:
    """What each element of an iterable is (or the part of it at `path`)."""
    if isinstance(value, ast.Call):
        return _iterated_call(kinds, value, path)
    if isinstance(value, (ast.List, ast.Tuple)) and value.elts:
        return join([kinds.element(element, path) for element in value.elts])
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return kinds.element(value.elt, path)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return iterated(kinds, value.left, path)
    if isinstance(value, ast.Subscript) and _is_group_parameters(value) and not path:
        return PARAMETER
    if isinstance(value, (ast.Name, ast.Attribute)):
        return _iterated_name(kinds, value, path)
    return None


def _iterated_name(kinds: Kinds, value: ast.Name | ast.Attribute, path: tuple[int, ...]) -> Fact | None:
    fact = kinds.fact(value)
    if fact is None or fact is UNDECIDED:
        return None
    if fact.is_tensor and not path:
        return TENSOR if fact.proven else TENSOR.likely()
    if fact.kind is not Kind.SEQUENCE:
        return Fact(Kind.MODULE) if fact.origin in {"torch.nn.ModuleList", "torch.nn.Sequential"} and not path else None
    sources = _sequence_sources(kinds, value)
    return join([iterated(kinds, source, path) for source in sources]) if sources else None


def _sequence_sources(kinds: Kinds, value: ast.Name | ast.Attribute) -> list[ast.expr]:
    """The literal sequences that a name may stand for; empty when one of them is not shown."""
    if isinstance(value, ast.Attribute):
        return []
    sources: list[ast.expr] = []
    for binding in kinds.flow.reaching(value):
        form, source, path = kinds.flow.definition(binding)
        if form is Form.PARAMETER and isinstance(binding, ast.arg):
            sources += _arguments(kinds, binding)
        elif form is Form.ASSIGNED and source is not None and not path and not isinstance(source, (ast.Name, ast.Attribute)):
            sources.append(source)
        else:
            return []
    return [s for s in sources if not isinstance(s, ast.Call)] if not any(_is_empty(s) for s in sources) else []


def _arguments(kinds: Kinds, argument: ast.arg) -> list[ast.expr]:
    function = kinds.index.parents.get(argument)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    passed = [kinds.functions.argument(call, function, argument.arg) for call in kinds.functions.calls_to(function)]
    return [value for value in passed if value is not None and not isinstance(value, (ast.Name, ast.Attribute))]


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, (ast.List, ast.Tuple)) and not value.elts


def _iterated_call(kinds: Kinds, call: ast.Call, path: tuple[int, ...]) -> Fact | None:
    name = kinds.names.qualified(call.func)
    if name == "builtins.zip" and path and path[0] < len(call.args):
        return iterated(kinds, call.args[path[0]], path[1:])
    if name == "builtins.enumerate" and path and call.args:
        return iterated(kinds, call.args[0], path[1:]) if path[0] == 1 else NUMBER
    if name in {"builtins.list", "builtins.reversed", "builtins.tuple", "builtins.sorted", "itertools.chain"} and call.args:
        return join([iterated(kinds, argument, path) for argument in call.args])
    if name == "builtins.filter" and len(call.args) > 1:
        return iterated(kinds, call.args[1], path)
    if name == "builtins.range":
        return NUMBER
    return _iterated_method(kinds, call, path) if isinstance(call.func, ast.Attribute) else None


def _iterated_method(kinds: Kinds, call: ast.Call, path: tuple[int, ...]) -> Fact | None:
    assert isinstance(call.func, ast.Attribute)
    method, owner = call.func.attr, kinds.fact(call.func.value)
    if owner is None or owner is UNDECIDED:
        # Nothing but a module has these two, and they give nothing but parameters.
        proof = {"named_parameters": (1,), "parameters": ()}.get(method)
        return PARAMETER if proof == path and not call.args else None
    if owner.kind is Kind.MODULE:
        if method in _ITERATED_METHODS and not path:
            return _ITERATED_METHODS[method]
        return _ITERATED_PAIRS.get(method) if path == (1,) else None
    if owner.kind is Kind.STATE_DICT and (method, path) in {("values", ()), ("items", (1,))}:
        return TENSOR
    return SEQUENCE if owner.is_tensor and method in {"split", "chunk"} and path else None


def _is_group_parameters(value: ast.Subscript) -> bool:
    """`group["params"]`, the parameters of one group of an optimizer."""
    return isinstance(value.slice, ast.Constant) and value.slice.value == "params"
