"""Rule `hidden-state-not-detached`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind, Recording
from torchfix_codemods.model.torch_api import RECURRENT_LAYERS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.rule import Finding


class HiddenStateNotDetached(Rule):
    """Hidden state that carries the graph of every batch before into the next backward.

    ## Why
    The second backward runs into the graph of the first, which is gone: "Trying to backward through the graph a second
    time". With `retain_graph=True` it works, and each step takes longer and more memory than the last.

    ## Example
    ```python
    import torch
    from torch import nn

    rnn = nn.GRU(2, 3)
    h = torch.zeros(1, 1, 3)
    for x in torch.randn(2, 4, 1, 2):
        out, h = rnn(x, h)
        out.sum().backward()
    ```
    ```python
    import torch
    from torch import nn

    rnn = nn.GRU(2, 3)
    h = torch.zeros(1, 1, 3)
    for x in torch.randn(2, 4, 1, 2):
        h = h.detach()
        out, h = rnn(x, h)
        out.sum().backward()
    ```

    ## Safety
    Only reported: how far back gradients go is a choice of the model. Silent where the state is detached, repackaged or
    made anew in the loop, and where one backward follows the loop.

    ## References
    https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    name = "hidden-state-not-detached"
    category = Category.MEMORY
    safety = Safety.REPORT
    needles = (b"torch", b"backward")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield recurrent calls that take the state which they gave in the iteration before."""
        for statement in file.index.all(ast.Assign):
            state = _carried(file, statement)
            loops = file.flow.loops(statement) if state is not None else []
            if state is not None and loops and _is_kept(file, statement, state, loops[0]):
                detached = f"{state} = tuple(s.detach() for s in {state})" if _is_lstm(file, statement) else f"{state} = {state}.detach()"
                advice = f"write `{detached}` before this line"
                yield self.finding(file, statement.value, f"`{state}` drags the graphs of all earlier batches along: {advice}")


def _carried(file: FileModel, statement: ast.Assign) -> str | None:
    """The name that a module call takes as an argument and gives back: `out, h = rnn(x, h)`."""
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Tuple) or len(statement.targets) != 1:
        return None
    fact = file.fact(call.func) if not file.qualified(call.func) else None
    if fact is None or not fact.proven or fact.kind is not Kind.MODULE:
        return None
    given = {a.id for a in [*call.args[1:], *(k.value for k in call.keywords)] if isinstance(a, ast.Name)}
    return next((t.id for t in target.elts[1:] if isinstance(t, ast.Name) and t.id in given), None)


def _is_kept(file: FileModel, statement: ast.Assign, state: str, loop: Loop) -> bool:
    """Whether nothing else in the loop sets the state, which comes from before it, and each iteration runs a backward."""
    inside = [node for part in loop.body for node in ast.walk(part)]
    stores = [n for n in inside if isinstance(n, ast.Name) and n.id == state and not isinstance(n.ctx, ast.Load)]
    if len(stores) != 1 or any(
        isinstance(n, ast.Attribute) and n.attr in {"detach_", "data"} and ast.unparse(n.value) == state for n in inside
    ):
        return False
    name = next(n for n in ast.walk(statement.value) if isinstance(n, ast.Name) and n.id == state)
    comes_from_before = any(b is not stores[0] for b in file.flow.reaching(name))
    events = list(file.training.events(loop.body))
    trains = any(e.happening is Happening.BACKWARD for e in events)
    return comes_from_before and trains and file.gradients.recording(statement) is Recording.ON


def _is_lstm(file: FileModel, statement: ast.Assign) -> bool:
    call = statement.value
    fact = file.fact(call.func) if isinstance(call, ast.Call) else None
    return fact is not None and fact.origin in RECURRENT_LAYERS and fact.origin == "torch.nn.LSTM"
