"""Rule `gpu-timing-sync`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertBefore, NeedImport, WrapInIf
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .gpu_guards import is_guarded, needs_gpu
from .timed_regions import is_in_training_loop, timed_regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .timed_regions import TimedRegion

_ACTIONS = tuple(f"torch.cuda.{name}" for name in ("synchronize", "reset_peak_memory_stats", "reset_max_memory_allocated"))
"""What raises without a GPU, and is called for its effect."""
_QUESTIONS = tuple(f"torch.cuda.{name}" for name in ("get_device_name", "memory_summary"))
"""What raises without a GPU, and is called for its answer."""


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
    Unsafe: what raised without a GPU now runs, and what was too fast with one is measured. Code that needs a GPU
    anyway is kept, and so is what a test for one guards. Clocks only for a straight line of clock, work and clock whose
    result is named as the time of a forward: meters of whole loops are kept, and inside a training loop, which waiting
    would slow down, it is reported.

    ## References
    https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
    """

    name = "gpu-timing-sync"
    category = Category.AMP
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch",)
    pattern = re.compile(rb"cuda|perf_counter|time\.time|monotonic|default_timer")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield unguarded waits, and timed work without one."""
        for call in file.calls(*_ACTIONS, *_QUESTIONS):
            if not file.roles.in_tests and not is_guarded(file, call) and not needs_gpu(file):
                yield self._unguarded(file, call)
        for region in timed_regions(file):
            yield self._unsynchronised(file, region)

    def _unguarded(self, file: FileModel, call: ast.Call) -> Finding:
        statement, test = file.parent(call), file.spelling("torch.cuda.is_available", call)
        text = file.source.code(call.func)
        if not isinstance(statement, ast.Expr) or test is None or file.qualified(call.func) not in _ACTIONS:
            return self.finding(file, call, f"`{text}` raises where there is no GPU: ask `torch.cuda.is_available()` first")
        span = file.source.span(statement)
        edits: list[Edit] = [WrapInIf(span, span, f"{test}()"), *_imports(file, call)]
        return self.finding(file, call, f"`{text}` raises where there is no GPU: guard it by `{test}()`", *edits)

    def _unsynchronised(self, file: FileModel, region: TimedRegion) -> Finding:
        message = "work on a GPU is still running when this time is taken: synchronize before both readings of the clock"
        torch = file.spelling("torch", region.start)
        if torch is None or is_in_training_loop(file, region):
            return self.finding(file, region.start, message)
        code = f"if {torch}.cuda.is_available():\n    {torch}.cuda.synchronize()"
        edits = [InsertBefore(file.source.span(statement), code) for statement in (region.start, region.end)]
        return self.finding(file, region.start, message, *edits, *_imports(file, region.start))


def _imports(file: FileModel, place: ast.AST) -> list[NeedImport]:
    return [NeedImport("torch")] if file.lacks_torch(place) else []
