"""What a checkpoint holds, and which of it a load of weights alone rejects."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model import Kind

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

NAMESPACE = "Namespace"
NUMPY = "numpy scalar"
_NUMPY_SCALARS = frozenset(f"numpy.{name}" for name in ("mean", "std", "var", "median", "sum", "max", "min", "float64", "float32", "int64"))
_MAKERS = {
    "argparse.Namespace": NAMESPACE,
    "pathlib.Path": "pathlib.Path",
    "collections.defaultdict": "defaultdict",
    "datetime.datetime.now": "datetime",
    "numpy.array": "numpy array",
    "numpy.random.get_state": "numpy array",
    "torch.Generator": "Generator",
}
"""Calls whose results only a full unpickler loads; found by loading them with torch 2.13."""


class Part(NamedTuple):
    """A value of a saved dictionary that is rejected, with its key and what it is."""

    value: ast.expr
    key: str
    kind: str


def entries(file: FileModel, saved: ast.expr) -> list[tuple[str, ast.expr]]:
    """The literal keys and values of what is saved: a dictionary, or a name that is bound once to one."""
    if isinstance(saved, ast.Name):
        bindings = file.names.bindings(saved)
        value = file.flow.definition(bindings[0]).value if len(bindings) == 1 else None
        return entries(file, value) if isinstance(value, ast.Dict) else []
    if not isinstance(saved, ast.Dict):
        return []
    pairs = zip(saved.keys, saved.values, strict=True)
    return [(key.value, value) for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)]


def rejected_parts(file: FileModel, saved: ast.expr) -> list[Part]:
    """The values that `torch.load` refuses with `weights_only=True`."""
    found = [(key, value, _kind(file, value)) for key, value in entries(file, saved)]
    return [Part(value, key, kind) for key, value, kind in found if kind]


def _kind(file: FileModel, value: ast.expr) -> str:
    if isinstance(value, ast.Name):
        definitions = [file.flow.definition(binding) for binding in file.flow.reaching(value)]
        if not definitions or any(d.path or d.value is None for d in definitions):
            return ""
        kinds = {_made(file, d.value) for d in definitions if d.value is not None}
        return kinds.pop() if len(kinds) == 1 else ""
    return _made(file, value)


def _made(file: FileModel, value: ast.expr) -> str:
    if not isinstance(value, ast.Call):
        fact = file.fact(value)
        return "optimizer" if fact is not None and fact.proven and fact.kind is Kind.OPTIMIZER else ""
    name = file.qualified(value.func) or ""
    if name in _NUMPY_SCALARS:
        return NUMPY if len(value.args) == 1 and not value.keywords else ""
    if isinstance(value.func, ast.Attribute) and value.func.attr == "parse_args" and not name:
        return NAMESPACE
    fact = file.fact(value)
    if fact is not None and fact.proven and fact.kind in {Kind.OPTIMIZER, Kind.SCHEDULER}:
        return "optimizer" if fact.kind is Kind.OPTIMIZER else "scheduler"
    return _MAKERS.get(name, "")
