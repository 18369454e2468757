"""What is given to a DataLoader as sampler: one for sure, or None on some paths."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .loaders import is_literal

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel


def is_sampler(file: FileModel, node: ast.expr) -> bool:
    """Whether a value is sure to be a sampler."""
    values = file.origins.of(node)
    return bool(values) and all(_makes_sampler(file, value) for value in values)


def _makes_sampler(file: FileModel, value: ast.expr) -> bool:
    """Whether an expression is a call of a class of samplers, which never gives None."""
    if not isinstance(value, ast.Call):
        return False
    definition = file.classes.resolve(value.func)
    if definition is not None:
        return any(base.endswith("Sampler") for base in file.classes.origins(definition))
    return (file.qualified(value.func) or "").rpartition(".")[2].endswith("Sampler")


def may_be_none(file: FileModel, node: ast.expr) -> bool:
    """Whether a value is a sampler on some paths and None on the others."""
    values = file.origins.of(node)
    made = [value for value in values if _makes_sampler(file, value)]
    return bool(made) and len(made) + sum(is_literal(value, None) for value in values) == len(values) > len(made)
