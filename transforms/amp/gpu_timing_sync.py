"""Rule `gpu-timing-sync`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore, NeedImport, WrapInIf
from torchfix_codemods.model import Happening
from torchfix_codemods.model.flow import catches
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "timeit.default_timer"})
_GUARD = re.compile(r"cuda|gpu|device", re.IGNORECASE)
_NEEDS_GPU = re.compile(
    rb"\.cuda\(|distributed|set_device|cuda\.(Event|Stream|current_|max_memory|memory_|get_device|reset_peak|nvtx|profiler)|['\"]cuda"
)
"""Signs of code that is for GPUs alone: to guard one line of it helps nobody."""
_MEASURES = re.compile(r"infer|latency|forward|fps|time per", re.IGNORECASE)
_WAITS = re.compile(r"synchronize\(|\.item\(|\.cpu\(|\.numpy\(|\.tolist\(")


class GpuTimingSync(Rule):
    """GPU work that is timed without waiting for it, or waited for where there may be no GPU.

    ## Why
    A CUDA kernel runs after the call that starts it has returned: without `synchronize()` before both clock readings
    only the launch is timed. And `torch.cuda.synchronize()` itself raises where there is no GPU.

    ## Example
    ```python
    import time

    import torch

    x = torch.ones(4, 4)
    torch.cuda.synchronize()
    start = time.time()
    ```
    ```python
    import time

    import torch

    x = torch.ones(4, 4)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.time()
    ```

    ## Safety
    Unsafe: what raised without a GPU now runs, and what was too fast with one is measured. Only for a straight line of
    clock, forward and clock whose result is named as the time of a forward; meters of whole loops are kept.

    ## References
    https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
    """

    name = "gpu-timing-sync"
    category = Category.AMP
    safety = Safety.UNSAFE
    needles = (b"torch", b"cuda")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield unguarded waits, and timed forwards without one."""
        for call in file.calls("torch.cuda.synchronize"):
            statement, test = file.parent(call), file.spelling("torch.cuda.is_available", call)
            if isinstance(statement, ast.Expr) and test is not None and not _is_guarded(file, statement):
                span = file.source.span(statement)
                yield self.finding(file, call, "raises where there is no GPU: guard it", WrapInIf(span, span, f"{test}()"))
        for assignment in file.index.all(ast.Assign):
            end = _timed(file, assignment)
            if end is not None:
                yield self._unsynchronised(file, assignment, end)

    def _unsynchronised(self, file: FileModel, start: ast.Assign, end: ast.stmt) -> Finding:
        message = "a forward on a GPU is still running when the clock is read: synchronize before both readings"
        torch = file.spelling("torch", start)
        if torch is None:
            return self.finding(file, start, message)
        code = f"if {torch}.cuda.is_available():\n    {torch}.cuda.synchronize()"
        edits: list[Edit] = [InsertBefore(file.source.span(statement), code) for statement in (start, end)]
        edits += [NeedImport("torch")] if file.lacks_torch(start) else []
        return self.finding(file, start, message, *edits)


def _is_guarded(file: FileModel, statement: ast.stmt) -> bool:
    """Whether a test for a GPU stands around it, or the file can't run without one anyway."""
    for ancestor in file.flow.ancestors(statement):
        if isinstance(ancestor, ast.If) and _GUARD.search(ast.unparse(ancestor.test)):
            return True
        if isinstance(ancestor, ast.Try) and any(catches(h, "RuntimeError", "AssertionError") for h in ancestor.handlers):
            return True
    return file.roles.in_tests or _NEEDS_GPU.search(file.source.data) is not None


def _timed(file: FileModel, start: ast.Assign) -> ast.stmt | None:
    """The statement that reads the clock again in the same block, after a forward and no wait."""
    if not _reads_clock(file, start.value) or not isinstance(start.targets[0], ast.Name):
        return None
    block, index = file.flow.place(start)
    for place, statement in enumerate(block[index + 1 :], index + 1):
        if any(_reads_clock(file, node) for node in ast.walk(statement)):
            between = block[index + 1 : place]
            text = "\n".join(ast.unparse(s) for s in between)
            forward = any(e.happening is Happening.FORWARD for e in file.training.events(between, depth=0))
            return statement if forward and not _WAITS.search(text) and _is_reported(file, statement, block[place:]) else None
    return None


def _reads_clock(file: FileModel, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and file.qualified(node.func) in _CLOCKS


def _is_reported(file: FileModel, end: ast.stmt, following: list[ast.stmt]) -> bool:
    """Whether the difference is told as the time of a forward."""
    names = [ast.unparse(t) for t in end.targets] if isinstance(end, ast.Assign) else []
    told = [s for s in following[:4] if isinstance(s, (ast.Expr, ast.Assign, ast.AugAssign))]
    texts = [file.source.code(s) for s in told if s is end or any(name in ast.unparse(s) for name in names)]
    return any(_MEASURES.search(text) for text in texts)
