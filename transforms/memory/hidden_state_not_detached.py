"""Rule `hidden-state-not-detached`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Kind, Recording
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
        """Yield calls of modules that take the state which they gave in the round before."""
        for statement in file.index.all(ast.Assign):
            states = _carried(file, statement)
            loops = file.flow.loops(statement) if states else []
            if any(_trains(file, loop) and _is_kept(file, statement, states, loop) for loop in loops):
                shown = ", ".join(ast.unparse(state) for state in states)
                advice = f"write `{shown} = {_detached(file, statement, states)}` before this line"
                yield self.finding(file, statement.value, f"`{shown}` drags the graphs of all earlier batches along: {advice}")


def _carried(file: FileModel, statement: ast.Assign) -> list[ast.expr]:
    """What a module call takes beside its input and gives back: `h` of `out, h = rnn(x, h)`; with the targets as written."""
    call = statement.value
    if not isinstance(call, ast.Call) or len(statement.targets) != 1:
        return []
    given = {ast.unparse(part) for part in _parts([*call.args[1:], *(k.value for k in call.keywords)])}
    states: list[ast.expr] = [target for target in _parts(statement.targets) if ast.unparse(target) in given]
    return states if states and _gives_its_graph(file, call.func) else []


def _parts(nodes: list[ast.expr]) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes in nested tuples and lists."""
    for node in nodes:
        if isinstance(node, (ast.Tuple, ast.List)):
            yield from _parts(node.elts)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield node


def _gives_its_graph(file: FileModel, func: ast.expr) -> bool:
    """Whether what is called is a module, and none that detaches its own state."""
    fact = file.fact(func) if not file.qualified(func) else None
    if fact is None or fact.kind is not Kind.MODULE:
        return False
    forward = file.classes.method(fact.origin, "forward") if isinstance(fact.origin, ast.ClassDef) else None
    return forward is None or not any(_detaches(node) for node in ast.walk(forward))


def _detaches(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in {"detach", "detach_", "data", "no_grad"}
    return isinstance(node, ast.Name) and "repackage" in node.id


def _trains(file: FileModel, loop: Loop) -> bool:
    return any(event.happening is Happening.BACKWARD for event in file.training.events(loop.body))


def _is_kept(file: FileModel, statement: ast.Assign, states: list[ast.expr], loop: Loop) -> bool:
    """Whether the states come from before a loop, and nothing else in it sets them or cuts them off."""
    if file.gradients.recording(statement) is not Recording.ON:
        return False
    inside = list(ast.walk(loop))
    for state in states:
        text = ast.unparse(state)
        stores = [n for n in inside if _is_store(n, state) and n is not state]
        if stores or any(_cuts_off(file, node, text) for node in inside) or not _comes_from_before(file, statement, state, loop):
            return False
    return True


def _is_store(node: ast.AST, state: ast.expr) -> bool:
    same = isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load)
    return same and ast.unparse(node) == ast.unparse(state)


def _cuts_off(file: FileModel, node: ast.AST, state: str) -> bool:
    """`h.detach_()`, a loop over the parts of the state, and a function that is called for nothing but what it does to it."""
    if isinstance(node, ast.Attribute):
        return node.attr in {"detach_", "data"} and ast.unparse(node.value).partition("[")[0] == state
    if isinstance(node, (ast.For, ast.comprehension)):
        return ast.unparse(node.iter) == state
    call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return call is not None and file.qualified(call.func) != "builtins.print" and any(ast.unparse(a) == state for a in call.args)


def _comes_from_before(file: FileModel, statement: ast.Assign, state: ast.expr, loop: Loop) -> bool:
    if isinstance(state, ast.Name):
        uses = (n for n in ast.walk(statement.value) if isinstance(n, ast.Name) and n.id == state.id)
        bindings = [b for use in uses for b in file.flow.reaching(use)]
        return any(not any(ancestor is loop for ancestor in file.flow.ancestors(b)) for b in bindings)
    # An attribute may be set by any method that the loop calls: only one that is set up once, in `__init__`, is sure to stay.
    stores = [n for n in file.attributes(state.attr) if not isinstance(n.ctx, ast.Load) and n is not state]  # type: ignore[attr-defined]  # an attribute
    return all(getattr(file.flow.function(store), "name", "__init__") == "__init__" for store in stores)


def _detached(file: FileModel, statement: ast.Assign, states: list[ast.expr]) -> str:
    """The states without their graphs, as code; the state of an LSTM under one name is a pair."""
    names = [ast.unparse(state) for state in states]
    if len(names) == 1 and _is_lstm(file, statement.value):
        return f"tuple(s.detach() for s in {names[0]})"
    return ", ".join(f"{name}.detach()" for name in names)


def _is_lstm(file: FileModel, value: ast.expr) -> bool:
    """Whether a call is of an LSTM, or of a module of the file that is built of one."""
    fact = file.fact(value.func) if isinstance(value, ast.Call) else None
    if fact is not None and isinstance(fact.origin, ast.ClassDef):
        return any(file.qualified(node.func) == "torch.nn.LSTM" for node in ast.walk(fact.origin) if isinstance(node, ast.Call))
    return fact is not None and fact.origin == "torch.nn.LSTM"
