"""Seeds of random number generators: those that change nothing, and those that are missing."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

SEED = "torch.manual_seed"
_GPU_SEEDS = ("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
_SEEDS_SOMETHING = re.compile(r"seed", re.IGNORECASE)
_DRAWS = {
    "numpy.random": frozenset(
        "rand randn randint random random_sample choice permutation shuffle normal uniform binomial beta multinomial".split()
    ),
    "random": frozenset("random randint randrange choice choices shuffle sample uniform gauss normalvariate betavariate".split()),
}


def redundant_seeds(file: FileModel) -> Iterator[tuple[ast.Call, str]]:
    """The seeds of GPUs right after `torch.manual_seed` was given the same one, with the code of that call."""
    for call in file.calls(*_GPU_SEEDS):
        # A call in the argument may give another seed each time.
        first = (
            None if any(isinstance(node, ast.Call) for argument in call.args for node in ast.walk(argument)) else _seed_before(file, call)
        )
        if first is not None and [ast.dump(a) for a in first.args] == [ast.dump(a) for a in call.args]:
            yield call, file.source.code(first)


def _seed_before(file: FileModel, call: ast.Call) -> ast.Call | None:
    """The `torch.manual_seed` that runs before a call with nothing but other settings in between."""
    statement = file.flow.statement(call)
    while True:
        block, index = file.flow.place(statement)
        for earlier in reversed(block[:index]):
            inner = earlier.value if isinstance(earlier, ast.Expr) else None
            if isinstance(inner, ast.Call) and file.qualified(inner.func) == SEED:
                return inner
            if not _sets_up(earlier):
                return None
        parent = file.parent(statement)
        if not isinstance(parent, ast.If):
            return None
        statement = parent


def _sets_up(statement: ast.stmt) -> bool:
    """Whether a statement sets a flag or a seed: it draws no random number, and binds no name that holds a seed."""
    if isinstance(statement, ast.If):
        return all(_sets_up(inner) for inner in (*statement.body, *statement.orelse))
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in statement.targets)
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return called is not None and ast.unparse(called).rpartition(".")[2] in {"seed", "manual_seed", "manual_seed_all", "print"}


def unseeded_draws(file: FileModel) -> Iterator[tuple[ast.Call, list[str]]]:
    """The first `torch.manual_seed` of a file, with the packages whose random numbers the file draws without a seed."""
    seeds = file.calls(SEED)
    if not seeds or file.roles.in_tests or _seeds_elsewhere(file):
        return
    called = {name for call in file.index.all(ast.Call) if (name := file.qualified(call.func))}
    packages = [package for package, draws in _DRAWS.items() if _draws_unseeded(package, draws, called)]
    if packages:
        yield seeds[0], packages


def _draws_unseeded(package: str, draws: frozenset[str], called: set[str]) -> bool:
    seeds = {f"{package}.{name}" for name in ("seed", "set_state", "setstate")}
    return not seeds & called and any(f"{package}.{name}" in called for name in draws)


def _seeds_elsewhere(file: FileModel) -> bool:
    """Whether the file calls a function that isn't shown and whose name speaks of seeds."""
    return any(
        _SEEDS_SOMETHING.search(ast.unparse(call.func).rpartition(".")[2])
        and not (file.qualified(call.func) or "").startswith(("torch.", "numpy.", "random."))
        and not file.functions.targets(call)
        for call in file.index.all(ast.Call)
        if isinstance(call.func, (ast.Name, ast.Attribute))
    )
