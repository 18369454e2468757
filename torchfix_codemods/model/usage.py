"""What the code does with a value says what it is: nothing but a module has `parameters()`, `eval()` and is called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from . import torch_api as api
from .facts import Fact, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .kinds import Kinds

_MODULE_METHODS = frozenset({"eval", "train", "parameters", "state_dict", "named_parameters", "zero_grad"})
_SCALER_METHODS = frozenset({"scale", "step", "update"})
_PAIR_FUNCTIONS = frozenset(f"torch.{name}" for name in api.PAIR_METHODS)
_MODULE_ENTRIES = frozenset({"forward", "generate", "inference", "encode", "decode", "sample", "loss"})


def used_as(kinds: Kinds, occurrences: Iterable[ast.expr]) -> Fact | None:
    """What a value must be for all that is done with it; `occurrences` are the places where it is read."""
    methods: set[str] = set()
    is_called = False
    for use in occurrences:
        parent = kinds.index.parents[use]
        if isinstance(parent, ast.Call) and parent.func is use:
            is_called = True
        if isinstance(parent, ast.Attribute) and _tells(parent, kinds.index.parents[parent]):
            methods.add(parent.attr)
    if methods & _MODULE_METHODS and (is_called or methods & _MODULE_ENTRIES):
        return Fact(Kind.MODULE)
    if methods & {"parameters", "named_parameters"} and methods & {"eval", "train", "state_dict", "load_state_dict"}:
        return Fact(Kind.MODULE)
    if methods >= _SCALER_METHODS:
        return Fact(Kind.SCALER)
    return Fact(Kind.OPTIMIZER) if {"zero_grad", "step"} <= methods and "parameters" not in methods else None


def used_nearby(kinds: Kinds, node: ast.Name | ast.Attribute) -> Fact | None:
    """What the function around a name (or `self.name`) shows it to be, when nothing shows where it comes from."""
    function = kinds.flow.function(node)
    return used_as(kinds, [other for other in kinds.same_reads(node) if kinds.flow.function(other) is function])


def used_as_tensor(kinds: Kinds, name: ast.Name) -> bool:
    """Whether the same value is elsewhere given to a function of torch that takes nothing but tensors, or differentiated."""
    bindings, function = set(kinds.flow.reaching(name)), kinds.flow.function(name)
    for other in kinds.reads(name.id):
        if other is not name and kinds.flow.function(other) is function and _takes_tensor(kinds, other):
            if set(kinds.flow.reaching(other)) == bindings:
                return True
    return False


def _takes_tensor(kinds: Kinds, use: ast.Name) -> bool:
    call = kinds.index.parents[use]
    if isinstance(call, ast.Attribute):
        method = kinds.index.parents[call]
        return call.attr == "backward" and isinstance(method, ast.Call) and method.func is call
    if not isinstance(call, ast.Call) or not call.args or call.args[0] is not use:
        return False
    name = kinds.names.qualified(call.func) or ""
    if name.startswith("torch.nn.functional.") or name in api.TENSOR_FUNCTIONS or name in _PAIR_FUNCTIONS:
        return True
    fact = kinds.fact(call.func) if not name else None
    return fact is not None and fact.proven and fact.origin in api.LOSS_LAYERS


def _tells(method: ast.Attribute, user: ast.AST) -> bool:
    """Whether a method is called, or named as a statement (with the parentheses forgotten), in a way that tells of its receiver."""
    return isinstance(user, ast.Expr) or (isinstance(user, ast.Call) and user.func is method and _is_telling(user, method.attr))


def _is_telling(call: ast.Call, method: str) -> bool:
    """Whether a call tells of a module: a data frame has `eval("a + b")`, a tokenizer `train(files)`."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if method in {"eval", "zero_grad", "step"}:
        return not any(isinstance(argument, (ast.JoinedStr, ast.Constant)) and _is_text(argument) for argument in arguments)
    if method != "train" or not arguments:
        return True
    return len(arguments) == 1 and (isinstance(arguments[0], (ast.Compare, ast.UnaryOp)) or _is_flag(arguments[0], call))


def _is_flag(argument: ast.expr, call: ast.Call) -> bool:
    constant = isinstance(argument, ast.Constant) and isinstance(argument.value, bool)
    return constant or any(keyword.arg == "mode" for keyword in call.keywords)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
