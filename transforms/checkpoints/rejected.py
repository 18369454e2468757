"""Which saved values a load of weights alone rejects."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS

from .payload import entries

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

NAMESPACE = "Namespace"
NUMPY = "numpy number"
NUMPY_INTEGER = "numpy integer"
_NUMBERS = frozenset({NUMPY, NUMPY_INTEGER})
_PARSED = "parsed arguments"
_ARRAY = "numpy array"
_REDUCTIONS = frozenset("mean std var median sum max min average prod nanmean nanmax nanmin percentile".split())
_MAKERS = {
    **{f"numpy.{name}": NUMPY for name in (*_REDUCTIONS, "float64", "float32", "float16")},
    **{f"numpy.{name}": NUMPY_INTEGER for name in ("argmax", "argmin", "int64", "int32", "count_nonzero")},
    **{f"numpy.{name}": _ARRAY for name in ("array", "asarray", "zeros", "ones", "arange", "linspace", "stack", "concatenate", "full")},
    **{f"numpy.random.{name}": _ARRAY for name in ("get_state", "rand", "randn", "permutation")},
    **{f"datetime.{name}": "datetime" for name in ("datetime.now", "datetime.today", "datetime.utcnow", "date.today", "timedelta")},
    "argparse.Namespace": NAMESPACE,
    "types.SimpleNamespace": _PARSED,
    "pathlib.Path": "pathlib.Path",
    "collections.defaultdict": "defaultdict",
    "builtins.frozenset": "frozenset",
    "builtins.slice": "slice",
    "torch.Generator": "Generator",
}
"""Calls whose results only a full unpickler loads; found by loading them with torch 2.13."""
_OBJECTS = {Kind.OPTIMIZER: "optimizer", Kind.SCHEDULER: "scheduler", Kind.SCALER: "scaler"}
_DEPTH = 6


class Part(NamedTuple):
    """A saved value that is rejected, with the keys that lead to it and what it is."""

    value: ast.expr
    keys: tuple[object, ...]
    kind: str


def rejected_parts(file: FileModel, save: ast.Call) -> list[Part]:
    """The values that `torch.load` refuses with `weights_only=True`; whole modules are another matter."""
    found = [(entry, _kind(file, entry.value, _DEPTH)) for entry in entries(file, save)]
    return [Part(entry.value, entry.keys, kind) for entry, kind in found if kind]


def _kind(file: FileModel, value: ast.expr, depth: int) -> str:
    """What a value is, if it is sure to be rejected."""
    if not depth:
        return ""
    if isinstance(value, ast.Name):
        return _bound(file, value, depth)
    if isinstance(value, ast.Attribute):
        owner = file.functions.class_of(value.value)
        values = file.classes.values(owner, value.attr) if owner else []
        return _same([_kind(file, held, depth - 1) for held in values]) or _object(file, value)
    if isinstance(value, ast.BinOp):
        sides = [_kind(file, side, depth - 1) or _number(file, side) for side in (value.left, value.right)]
        return NUMPY if set(sides) <= {*_NUMBERS, "number"} and set(sides) != {"number"} else ""
    if isinstance(value, ast.Lambda):
        return "function"
    return _made(file, value, depth) if isinstance(value, ast.Call) else ""


def _bound(file: FileModel, name: ast.Name, depth: int) -> str:
    kinds: list[str] = []
    for binding in file.flow.reaching(name):
        form, value, path = file.flow.definition(binding)
        if form is Form.PARAMETER:
            kinds.append(_passed(file, binding, depth))
        elif form is Form.DEFINED:
            kinds.append("class" if isinstance(binding, ast.ClassDef) else "function")
        elif form is Form.ASSIGNED and path == (0,) and isinstance(value, ast.Call) and _is_parse(value, "parse_known_args"):
            kinds.append(_parsed(file, value))
        elif form is Form.ASSIGNED and not path and value is not None:
            kinds.append(_kind(file, value, depth - 1) or _number(file, value))
        else:
            kinds.append("")
    if set(kinds) <= {*_NUMBERS, "number"} and set(kinds) & _NUMBERS:
        return NUMPY if len(set(kinds)) > 1 else kinds[0]
    return _same(kinds).replace("number", "") if _same(kinds) == "number" else _same(kinds)


def _passed(file: FileModel, binding: ast.AST, depth: int) -> str:
    """What every call of the file passes for a parameter."""
    function = file.parent(binding)
    if not isinstance(function, FUNCTIONS) or not isinstance(binding, ast.arg):
        return ""
    if binding.annotation is not None and file.qualified(binding.annotation) == "argparse.Namespace":
        return NAMESPACE
    values = [file.functions.argument(call, function, binding.arg) for call in file.functions.calls_to(function)]
    return _same([_kind(file, value, depth - 1) if value is not None else "" for value in values])


def _made(file: FileModel, call: ast.Call, depth: int) -> str:
    name = file.qualified(call.func) or ""
    if name in _MAKERS:
        reduces = name.rpartition(".")[2] in {*_REDUCTIONS, "argmax", "argmin"}
        return _MAKERS[name] if not reduces or not any(k.arg in {"axis", "keepdims", None} for k in call.keywords) else _ARRAY
    if name == "builtins.round" and call.args:
        kind = _kind(file, call.args[0], depth - 1)
        return kind if kind in _NUMBERS and len(call.args) > 1 else ""
    if _is_parse(call, "parse_args"):
        return _parsed(file, call)
    functions = file.functions.targets(call) if not name else ()
    returned = [value for function in functions if function.name != "__init__" for value in file.functions.returns(function)]
    if returned:
        return _same([_kind(file, value, depth - 1) if value is not None else "" for value in returned])
    return _of_array(file, call) or _object(file, call)


def _is_parse(call: ast.Call, method: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == method


def _parsed(file: FileModel, call: ast.Call) -> str:
    """A Namespace, where the parser is argparse's own; other parsers give something like it."""
    parser = call.func.value if isinstance(call.func, ast.Attribute) else None
    bindings = file.flow.reaching(parser) if isinstance(parser, ast.Name) else []
    makers = [parser, *(file.flow.definition(binding).value for binding in bindings)]
    plain = any(isinstance(maker, ast.Call) and file.qualified(maker.func) == "argparse.ArgumentParser" for maker in makers)
    return NAMESPACE if plain else _PARSED if file.names.imports("argparse") else ""


def _of_array(file: FileModel, call: ast.Call) -> str:
    """`scores.mean()` of an array is a number of numpy's own."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    fact = file.fact(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if fact is None or not fact.proven:
        return ""
    if method == "numpy" and fact.is_tensor:
        return _ARRAY
    if fact.kind is not Kind.ARRAY or call.args or call.keywords:
        return ""
    return NUMPY if method in _REDUCTIONS else NUMPY_INTEGER if method in {"argmax", "argmin"} else ""


def _object(file: FileModel, value: ast.expr) -> str:
    fact = file.fact(value)
    if fact is None or not fact.proven:
        return ""
    if fact.kind is Kind.OTHER and isinstance(fact.origin, ast.ClassDef):
        return f"object of class {fact.origin.name}"
    return _OBJECTS.get(fact.kind, "")


def _number(file: FileModel, value: ast.expr) -> str:
    fact = file.fact(value)
    return "number" if fact is not None and fact.proven and fact.kind is Kind.NUMBER else ""


def _same(kinds: list[str]) -> str:
    return kinds[0] if kinds and len(set(kinds)) == 1 else ""
