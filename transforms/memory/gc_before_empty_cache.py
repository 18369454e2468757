"""Rule `gc-before-empty-cache`."""

from __future__ import annotations

import ast
import re
from itertools import takewhile
from typing import TYPE_CHECKING

from torchfix_codemods.edits import MoveBefore, ReplaceExpression
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.flow import LOOPS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding

_EMPTY_CACHE = tuple(f"torch.{module}.empty_cache" for module in ("cuda", "cuda.memory", "mps", "xpu", "accelerator", "accelerator.memory"))
_LOADER_NAME = re.compile(r"loader", re.IGNORECASE)


class GcBeforeEmptyCache(Rule):
    """`empty_cache` before the objects that hold the memory are gone, or in every batch.

    ## Why
    `empty_cache` gives back only memory that no tensor holds. What is deleted or collected after it stays in the cache.

    ## Example
    ```python
    import gc

    import torch


    def release(model: torch.nn.Module):
        torch.cuda.empty_cache()
        del model
        gc.collect()
    ```
    ```python
    import gc

    import torch


    def release(model: torch.nn.Module):
        del model
        gc.collect()
        torch.cuda.empty_cache()
    ```

    ## Safety
    Safe: no value depends on the cache. Only `del` and `gc.collect()` that follow directly are moved; where anything
    stands between them (it may measure memory), and in handlers of exceptions, the order is kept. Only reported in loops
    over batches: there the cache is what makes the next batch fast, and emptying it mends no leak.

    ## References
    https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    """

    name = "gc-before-empty-cache"
    category = Category.MEMORY
    safety = Safety.SAFE
    needles = (b"torch", b"empty_cache")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls of `empty_cache` that are followed by what frees memory, or that run for each batch."""
        for call in file.calls(*_EMPTY_CACHE):
            statement = file.parent(call)
            if not isinstance(statement, ast.Expr) or _handles_exception(file, statement):
                continue
            name = file.source.code(call)
            if _runs_for_each_batch(file, statement):
                message = f"{name} runs for each batch: it frees nothing that is still held, and the next batch allocates anew; call it after the loop"
                yield self.finding(file, statement, message)
            elif freeing := _freeing_after(file, call, statement):
                message = f"{name} can't give back what `{file.source.code(freeing[0])}` frees after it: call it last"
                yield self.finding(file, statement, message, *_reordered(file, [statement, *freeing]))


def _reordered(file: FileModel, statements: list[ast.stmt]) -> list[Edit]:
    """The first statement last; none of the edits where a `del` shares its line with others."""
    first, *others = [file.source.span(statement) for statement in statements]
    lines = [line for s in _with_neighbours(file, statements) for line in {s.lineno, s.end_lineno}]
    if len(set(lines)) == len(lines):
        return [MoveBefore(other, first) for other in others]
    if any(isinstance(statement, ast.Delete) for statement in statements):
        return []
    codes = [file.source.code(statement) for statement in statements]
    return [ReplaceExpression(span, code) for span, code in zip([first, *others], [*codes[1:], codes[0]], strict=True)]


def _with_neighbours(file: FileModel, statements: list[ast.stmt]) -> list[ast.stmt]:
    block, index = file.flow.place(statements[0])
    return block[max(index - 1, 0) : index + len(statements) + 1]


def _handles_exception(file: FileModel, statement: ast.stmt) -> bool:
    return any(isinstance(ancestor, ast.ExceptHandler) for ancestor in file.flow.ancestors(statement))


def _freeing_after(file: FileModel, call: ast.Call, statement: ast.stmt) -> list[ast.stmt]:
    """The statements directly after that free memory; none when they lead to another `empty_cache`, which then is the last."""
    block, index = file.flow.place(statement)
    following = list(takewhile(lambda s: _frees(file, s, call), block[index + 1 :]))
    rest = block[index + 1 + len(following) :]
    return [] if rest and _called(file, rest[0]) in _EMPTY_CACHE else following


def _frees(file: FileModel, statement: ast.stmt, call: ast.Call) -> bool:
    if isinstance(statement, ast.Delete):
        return not _names_in(statement) & _names_in(call)
    return _called(file, statement) == "gc.collect"


def _names_in(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _called(file: FileModel, statement: ast.stmt) -> str | None:
    """What a statement that is nothing but a call runs."""
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return file.qualified(statement.value.func) if is_call else None  # type: ignore[attr-defined]  # just tested


def _runs_for_each_batch(file: FileModel, statement: ast.stmt) -> bool:
    """Whether each round of the loop around a statement runs it, and a model."""
    block = file.parent(statement)
    while isinstance(block, (ast.With, ast.Try)):
        block = file.parent(block)
    return isinstance(block, (ast.For, ast.AsyncFor, ast.While)) and (_iterates_batches(file, block) or _runs_model(file, block))


def _iterates_batches(file: FileModel, loop: Loop) -> bool:
    if isinstance(loop, ast.While):
        return False
    source = loop.iter
    while isinstance(source, ast.Call) and source.args:
        source = source.args[0]  # enumerate(loader), tqdm(loader)
    fact = file.fact(source)
    return (
        fact.kind is Kind.LOADER
        if fact
        else isinstance(source, (ast.Name, ast.Attribute)) and bool(_LOADER_NAME.search(ast.unparse(source)))
    )


def _runs_model(file: FileModel, loop: Loop) -> bool:
    """Whether the loop itself, or a function without a loop that it calls, runs a model or a backward."""
    for event in file.training.events(loop.body, depth=1):
        is_own = event.elsewhere is None and file.flow.loops(event.node)[:1] == [loop] and (event.is_here or not _loops(file, event))
        if is_own and (event.happening is Happening.BACKWARD or _is_plain_forward(event)):
            return True
    return False


def _loops(file: FileModel, event: Event) -> bool:
    function = file.flow.function(event.origin)
    return function is None or any(isinstance(node, (*LOOPS, ast.comprehension)) for node in ast.walk(function))


def _is_plain_forward(event: Event) -> bool:
    """`model(x)`; a method such as `model.inference(loader)` may go through a whole data set."""
    return event.happening is Happening.FORWARD and isinstance(event.origin, ast.Call) and event.origin.func is event.subject
