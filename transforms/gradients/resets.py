"""Loops that reset the gradients of all parameters of a module by hand."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel


@dataclass(frozen=True, slots=True)
class Reset:
    """Such a loop, and the call that does the same."""

    loop: ast.For
    code: str
    is_guarded: bool
    """Whether it copes with parameters that have no gradient."""


def resets(file: FileModel) -> Iterator[Reset]:
    """The loops over `module.parameters()` whose body is nothing but a reset of each gradient."""
    if b"create_graph" in file.source.data:
        return  # such gradients have a graph, which zero_grad cuts off and a zeroed `.data` keeps
    for loop in file.index.all(ast.For):
        module = _module(file, loop)
        if module is None or not isinstance(loop.target, ast.Name) or loop.orelse or _is_used_after(file, loop, loop.target):
            continue
        name = loop.target.id
        statements, guarded = _unguarded(loop.body, name)
        texts = [ast.unparse(statement) for statement in statements]
        if texts == [f"{name}.grad = None"]:
            yield Reset(loop, f"{module}.zero_grad(set_to_none=True)", is_guarded=True)
        elif texts and texts[-1] in _zeros(name) and set(texts[:-1]) <= {f"{name}.grad.detach_()"}:
            keeps_zeros = guarded or _is_written_elsewhere(file, loop)
            yield Reset(loop, f"{module}.zero_grad(set_to_none=False)" if keeps_zeros else f"{module}.zero_grad()", guarded)


def _unguarded(body: list[ast.stmt], name: str) -> tuple[list[ast.stmt], bool]:
    """What a body does for parameters with a gradient; and whether it passes over the others."""
    first = body[0]
    if isinstance(first, ast.If) and not first.orelse:
        test = ast.unparse(first.test)
        if len(body) == 1 and test in _guards(name):
            return first.body, True
        if test in _opposite_guards(name) and len(first.body) == 1 and isinstance(first.body[0], ast.Continue):
            return body[1:], True
    return body, False


def _is_written_elsewhere(file: FileModel, loop: ast.For) -> bool:
    """Whether something writes into gradients in place, for which None won't do."""
    for node in file.attributes("grad"):
        parent, statement = file.parent(node), file.flow.statement(node)
        in_place = isinstance(parent, ast.Attribute) and (parent.attr == "data" or parent.attr.endswith("_"))
        if (in_place or isinstance(statement, ast.AugAssign)) and not any(a is loop for a in file.flow.ancestors(node)):
            return True
    return False


def _guards(name: str) -> set[str]:
    return {f"{name}.grad is not None", f"not {name}.grad is None", f"{name}.grad != None", f"{name}.grad"}


def _opposite_guards(name: str) -> set[str]:
    return {f"{name}.grad is None", f"{name}.grad == None", f"not {name}.grad is not None"}


def _zeros(name: str) -> set[str]:
    return {f"{name}.grad.zero_()", f"{name}.grad.data.zero_()", f"{name}.grad.detach().zero_()"}


def _module(file: FileModel, loop: ast.For) -> str | None:
    """The proven module whose parameters a loop runs over, as written."""
    call = loop.iter
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "parameters"
        or call.args
        or call.keywords
    ):
        return None
    fact = file.fact(call.func.value)
    own = fact is not None and file.classes.has_method(fact.origin, "zero_grad")
    return file.source.code(call.func.value) if fact is not None and fact.proven and fact.kind is Kind.MODULE and not own else None


def _is_used_after(file: FileModel, loop: ast.For, target: ast.Name) -> bool:
    inside = {id(node) for node in ast.walk(loop)}
    return any(id(read) not in inside and target in file.flow.reaching(read) for read in file.kinds.reads(target.id))
