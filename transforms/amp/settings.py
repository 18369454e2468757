"""The flags of cuDNN that a file sets, and which of them hold together."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model.branches import exclusive, sure_to_follow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_FLAGS = {"torch.backends.cudnn.benchmark": "benchmark", "torch.backends.cudnn.deterministic": "deterministic"}
_ALGORITHMS = "torch.use_deterministic_algorithms"


class Setting(NamedTuple):
    """One flag that is set; `value` is None when it isn't a literal."""

    flag: str
    value: bool | None
    statement: ast.stmt
    literal: ast.expr | None
    """The literal, where it is this flag's alone."""


def settings(file: FileModel) -> list[Setting]:
    """Every place that sets `benchmark` or `deterministic`, or asks for deterministic algorithms."""
    found = [setting for statement in file.index.all(ast.Assign) for setting in _assigned(file, statement)]
    asked = [call for call in file.calls(_ALGORITHMS) if call.args]
    return found + [Setting("deterministic", _truth(call.args[0]), file.flow.statement(call), None) for call in asked]


def _assigned(file: FileModel, statement: ast.Assign) -> Iterator[Setting]:
    alone = len(statement.targets) == 1
    for target in statement.targets:
        for name, value in _pairs(target, statement.value):
            flag = _FLAGS.get(file.qualified(name) or "")
            if flag:
                yield Setting(flag, _truth(value), statement, value if alone else None)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    return list(zip(target.elts, value.elts, strict=False)) if isinstance(value, ast.Tuple) else [(name, value) for name in target.elts]


def _truth(value: ast.expr) -> bool | None:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None


def is_overruled(file: FileModel, setting: Setting, others: list[Setting]) -> bool:
    """Whether the same flag is sure to be set again later."""
    later = set(sure_to_follow(file.flow, setting.statement))
    return any(other.flag == setting.flag and other.statement in later for other in others)


def may_hold_together(file: FileModel, first: ast.AST, second: ast.AST) -> bool:
    """Whether both places may run in one call of the same function."""
    same = file.flow.function(first) is file.flow.function(second)
    return same and not exclusive(file.flow, first, second) and not exclusive(file.flow, second, first)


def runs_with(file: FileModel, first: ast.AST, second: ast.AST) -> bool:
    """Whether `first` runs wherever `second` does: under the same conditions, or under fewer."""
    return set(_conditions(file, first)) <= set(_conditions(file, second))


def _conditions(file: FileModel, node: ast.AST) -> Iterator[str]:
    """What must hold for a place to run within its function: the text of each test, and the branch taken."""
    child = node
    for ancestor in file.flow.ancestors(node):
        if ancestor is file.flow.function(node):
            return
        if isinstance(ancestor, ast.If):
            yield f"{ast.unparse(ancestor.test)} is {child in ancestor.body}"
        elif isinstance(ancestor, (ast.ExceptHandler, ast.While, ast.For, ast.match_case)):
            yield str(id(ancestor))
        child = ancestor
