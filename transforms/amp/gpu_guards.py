"""Whether code runs only where there is a GPU: by a test around it, or because it can't run anywhere else."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model.flow import catches, leaves
from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_TESTS = re.compile(r"cuda|gpu|device|sync", re.IGNORECASE)
_ONLY_WITH_GPU = frozenset(
    f"torch.cuda.{name}" for name in "set_device current_device Event Stream CUDAGraph device stream graph current_stream".split()
)
_GPU = re.compile(r"cuda(:\d+)?|nccl")


def is_guarded(file: FileModel, node: ast.AST, depth: int = 2) -> bool:
    """Whether a test for a GPU, or a handler of its absence, stands around a place, before it, or around all calls that lead there."""
    child = node
    for ancestor in file.flow.ancestors(node):
        if (
            isinstance(ancestor, (ast.If, ast.IfExp, ast.While))
            and child is not ancestor.test
            and _TESTS.search(ast.unparse(ancestor.test))
        ):
            return True
        if isinstance(ancestor, ast.BoolOp) and _TESTS.search(ast.unparse(ancestor.values[0])) and child is not ancestor.values[0]:
            return True
        if isinstance(ancestor, ast.Try) and any(catches(h, "RuntimeError", "AssertionError") for h in ancestor.handlers):
            return True
        if isinstance(child, ast.stmt) and _left_without_gpu(file, child):
            return True
        if isinstance(ancestor, FUNCTIONS):
            told = any(_TESTS.search(text) for text in (ancestor.name, *map(ast.unparse, ancestor.decorator_list)))
            calls = file.functions.calls_to(ancestor) if depth else []
            return told or (bool(calls) and all(is_guarded(file, call, depth - 1) for call in calls))
        child = ancestor
    return isinstance(child, ast.stmt) and _left_without_gpu(file, child)


def _left_without_gpu(file: FileModel, statement: ast.stmt) -> bool:
    """Whether the block has been left before a statement when there is no GPU."""
    block, index = file.flow.place(statement)
    return any(
        (isinstance(earlier, ast.If) and _leaves(earlier.body) and _TESTS.search(ast.unparse(earlier.test)))
        or (isinstance(earlier, ast.Assert) and _TESTS.search(ast.unparse(earlier.test)))
        for earlier in block[:index]
    )


def _leaves(block: list[ast.stmt]) -> bool:
    exits = isinstance(block[-1], ast.Expr) and re.search(r"exit\(|skip\(", ast.unparse(block[-1])) is not None
    return exits or leaves(block)


def needs_gpu(file: FileModel) -> bool:
    """Whether the file uses a GPU somewhere without a test: a guard in one place would not make it run elsewhere."""
    return any(not is_guarded(file, use) for use in _uses(file))


def _uses(file: FileModel) -> Iterator[ast.AST]:
    """The uses of a GPU that fail without one."""
    yield from (call for call in file.methods("cuda") if not file.qualified(call.func))
    yield from (call for call in file.index.all(ast.Call) if file.qualified(call.func) in _ONLY_WITH_GPU)
    yield from (text for text in file.index.all(ast.Constant) if _is_gpu(file, text))


def _is_gpu(file: FileModel, text: ast.Constant) -> bool:
    """Whether a text is the one device that a call is given, and no default or one of two choices."""
    if not isinstance(text.value, str) or not _GPU.fullmatch(text.value):
        return False
    call = file.parent(text)
    if isinstance(call, ast.keyword):
        return call.arg in {"device", "backend"}
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in {"to", "device", "init_process_group"}
