"""What a function's parameter is: by annotation, by what the function does with it, by what callers pass."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from . import torch_api as api
from .facts import PARAMETER, TENSOR, Fact, Kind, join
from .usage import used_as

if TYPE_CHECKING:
    from .index import Function
    from .kinds import Kinds

_MODEL_NAME = re.compile(
    r"(^|_)(model|net|network|classifier|encoder|decoder|gen|generator|disc|discriminator|net_?g|net_?d|backbone|student|teacher)\d*$",
    re.IGNORECASE,
)
_OPTIMIZER_NAME = re.compile(r"(^|_)(opt|optim|optimizer|solver)(_?\w{1,2})?$", re.IGNORECASE)
_INIT_NAME = re.compile(r"(^|_)(init|initiali[sz]e|reset_parameters)", re.IGNORECASE)


def parameter(kinds: Kinds, argument: ast.arg) -> Fact | None:
    """What is known of a parameter inside its function."""
    owner = kinds.index.parents.get(argument)
    if isinstance(owner, ast.Lambda) or owner is None:
        return None
    assert isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef))
    if argument is owner.args.vararg or argument is owner.args.kwarg:
        return None
    own = _receiver(kinds, owner, argument)
    if own:
        return own
    for source in (_annotated, _used, _passed, _applied, _named):
        fact = source(kinds, owner, argument)
        if fact is not None:
            return fact
    return None


def _receiver(kinds: Kinds, function: Function, argument: ast.arg) -> Fact | None:
    definition = kinds.classes.owner(function)
    if definition is None or not function.args.args or argument is not function.args.args[0]:
        return None
    if any(isinstance(d, ast.Name) and d.id in {"staticmethod", "classmethod"} for d in function.decorator_list):
        return None
    if kinds.classes.is_module(definition):
        return Fact(Kind.MODULE, definition)
    return Fact(Kind.OPTIMIZER if kinds.classes.is_optimizer(definition) else Kind.OTHER, definition)


def _annotated(kinds: Kinds, _: Function, argument: ast.arg) -> Fact | None:
    annotation = argument.annotation
    if annotation is None:
        return None
    name = kinds.names.qualified(annotation) or ""
    definition = kinds.classes.resolve(annotation) or kinds.classes.imported(name)
    if definition and kinds.classes.is_module(definition):
        return Fact(Kind.MODULE, definition)
    if name in {"torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}:
        return TENSOR
    if name in {"torch.nn.Parameter", "torch.nn.parameter.Parameter"}:
        return PARAMETER
    if name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
        return Fact(Kind.MODULE, None if name == api.MODULE_BASE else name)
    if name.startswith("torch.optim.") and "lr_scheduler" not in name:
        return Fact(Kind.OPTIMIZER, name)
    if name in api.SCALERS:
        return Fact(Kind.SCALER, name)
    return Fact(Kind.LOADER, name) if name == api.LOADER else None


def _used(kinds: Kinds, function: Function, argument: ast.arg) -> Fact | None:
    return used_as(kinds, kinds.uses(function, argument.arg))


def _passed(kinds: Kinds, function: Function, argument: ast.arg) -> Fact | None:
    """What the callers in this file pass, as far as it is known."""
    passed = [kinds.functions.argument(call, function, argument.arg) for call in kinds.functions.calls_to(function)]
    facts = [kinds.fact(value) for value in passed if value is not None]
    known = [fact for fact in facts if fact is not None]
    if not known or (len(known) < len(facts) and not all(fact.kind is Kind.MODULE for fact in known)):
        return None
    joined = join(list(known))
    # Callers in other files may pass a tensor of another shape.
    return joined.likely() if joined is not None and joined.kind is Kind.SCALAR_TENSOR else joined


def _applied(kinds: Kinds, function: Function, argument: ast.arg) -> Fact | None:
    """The function is passed to `module.apply`, or is an init function that looks at the class of its argument."""
    if not function.args.args or argument.arg not in {a.arg for a in function.args.args[:2]}:
        return None
    for name in kinds.reads(function.name):
        if function in kinds.names.bindings(name):
            call = kinds.index.parents[name]
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "apply" and name in call.args:
                receiver = kinds.fact(call.func.value)
                if receiver and receiver.kind is Kind.MODULE and receiver.proven:
                    return Fact(Kind.MODULE)
    return Fact(Kind.MODULE) if _INIT_NAME.search(function.name) and _looks_at_class(kinds, function, argument.arg) else None


def _looks_at_class(kinds: Kinds, function: Function, name: str) -> bool:
    """`isinstance(m, nn.Linear)`, `m.__class__.__name__` or `type(m)` in an init function: `m` is a module."""
    for use in kinds.uses(function, name):
        parent = kinds.index.parents[use]
        if isinstance(parent, ast.Attribute) and parent.attr == "__class__":
            return True
        if isinstance(parent, ast.Call) and kinds.names.qualified(parent.func) == "builtins.isinstance" and is_layer_test(kinds, parent):
            return True
        if isinstance(parent, ast.Call) and kinds.names.qualified(parent.func) in {"builtins.type", "builtins.hasattr"}:
            return True
    return False


def is_layer_test(kinds: Kinds, call: ast.Call) -> bool:
    """Whether `isinstance(x, …)` tests for classes of torch.nn (or modules of this file) alone."""
    if len(call.args) != 2:  # isinstance takes two
        return False
    tested = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
    return all((kinds.names.qualified(t) or "").startswith("torch.nn.") or _is_own_module(kinds, t) for t in tested)


def _is_own_module(kinds: Kinds, node: ast.expr) -> bool:
    definition = kinds.classes.resolve(node) or kinds.classes.imported(kinds.names.qualified(node))
    return definition is not None and kinds.classes.is_module(definition)


def _named(_: Kinds, function: Function, argument: ast.arg) -> Fact | None:
    """The name alone: a hint, never proof."""
    if _MODEL_NAME.search(argument.arg):
        return Fact(Kind.MODULE, proven=False)
    if _OPTIMIZER_NAME.search(argument.arg):
        return Fact(Kind.OPTIMIZER, proven=False)
    if function.name == "forward":
        return TENSOR.likely()
    return None
