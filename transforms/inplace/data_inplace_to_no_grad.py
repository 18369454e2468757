"""Rule `data-inplace-to-no-grad`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail, NeedImport, WrapInWith
from torchfix_codemods.model import Happening, Kind, Recording
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

from .graphs import is_between_forward_and_backward
from .writes import is_plain, is_written_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_INIT_NAME = re.compile(r"^(__init__|_?init.*|.*_init|init_.*|reset_parameters|_?.*weights?_init.*|load_.*weights.*)$")
_FORWARD_NAMES = frozenset({"forward", "__call__"})


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that writes through `.data`."""

    statement: ast.stmt
    data: ast.Attribute
    """The `x.data` that is written."""
    safety: Safety


class DataInplaceToNoGrad(Rule):
    """In-place write through `.data` instead of under `torch.no_grad()`.

    ## Why
    Autograd doesn't count a write through `.data`: between a forward and its backward it makes gradients wrong in
    silence. Under `torch.no_grad()` the same write is allowed and counted.

    ## Example
    ```python
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.fc.weight.data.normal_(0, 0.02)
            self.fc.bias.data.zero_()
    ```
    ```python
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            with torch.no_grad():
                self.fc.weight.normal_(0, 0.02)
                self.fc.bias.zero_()
    ```

    ## Safety
    Safe for parameters in code that initialises a module: no graph can hold them yet; values and random numbers are
    the same. Unsafe elsewhere: the write is now counted. Only reported in `forward`, between a forward and its
    backward, and for a tensor that is part of a graph: there the honest form may raise, since the old one was wrong.

    ## References
    https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
    """

    name = "data-inplace-to-no-grad"
    category = Category.INPLACE
    safety = Safety.SAFE
    needles = (b"torch", b".data")
    pattern = re.compile(rb"(?<!utils)\.data\b")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield runs of statements that write through `.data`."""
        writes = {id(w.statement): w for node in file.attributes("data") if (w := _write(file, node))}
        done: set[int] = set()
        for write in writes.values():
            if id(write.statement) in done:
                continue
            run = _run(file, write, writes)
            done |= {id(w.statement) for w in run}
            yield self._finding(file, run)

    def _finding(self, file: FileModel, run: list[Write]) -> Finding:
        first = run[0]
        text = file.source.code(first.data.value)
        no_grad = file.spelling("torch.no_grad", first.statement)
        if first.safety is Safety.REPORT or no_grad is None:
            message = (
                f"`{text}.data` is written where a graph may hold `{text}`: gradients can go wrong in silence; "
                "use an out-of-place operation, or torch.no_grad() if it is a parameter that no graph uses now"
            )
            return self.finding(file, first.statement, message)
        edits: list[Edit] = [edit for write in run for edit in _without_data(file, write)]
        if not _is_guarded(file, first.statement):
            span = file.source.span
            edits.append(WrapInWith(span(first.statement), span(run[-1].statement), f"{no_grad}()"))
            edits += [NeedImport("torch")] if file.lacks_torch(first.statement) else []
        message = f"write to `{text}` under torch.no_grad() instead of through .data"
        return self.finding(file, first.statement, message, *edits, safety=first.safety)


def _write(file: FileModel, node: ast.Attribute) -> Write | None:
    """The statement that writes through this `.data`, when it does nothing else."""
    if not isinstance(node.ctx, ast.Load) and not isinstance(file.parent(node), ast.AugAssign):
        return None
    statement = file.flow.statement(node)
    if not is_written_by(statement, node) or not is_plain(node.value) or not file.kinds.is_tensor(node.value):
        return None
    return None if _rebinds_outer_name(file, node, statement) else Write(statement, node, _safety(file, node, statement))


def _rebinds_outer_name(file: FileModel, node: ast.Attribute, statement: ast.stmt) -> bool:
    """`w.data -= g` reads the outer `w`; `w -= g` would make it a local of the function."""
    if not (isinstance(statement, ast.AugAssign) and statement.target is node and isinstance(node.value, ast.Name)):
        return False
    scope = file.names.scope_of(node.value)
    owner = file.flow.function(node) or file.tree
    return scope is None or scope.node is not owner


def _safety(file: FileModel, node: ast.Attribute, statement: ast.stmt) -> Safety:
    function = file.flow.function(node)
    name = function.name if isinstance(function, FUNCTIONS) else ""
    is_parameter = file.kinds.is_kind(node.value, Kind.PARAMETER)
    if name in _FORWARD_NAMES or _is_scripted(function):
        return Safety.REPORT
    if _is_gradient(node.value):
        return Safety.UNSAFE
    is_parameter = is_parameter or _is_module_tensor(file, node.value)
    if not is_parameter and file.gradients.tracked(node.value) is not False:
        return Safety.REPORT
    if is_between_forward_and_backward(file, node.value, statement):
        return Safety.REPORT
    if (
        is_parameter
        and isinstance(function, FUNCTIONS)
        and (_INIT_NAME.match(name) or _is_applied(file, name))
        and not _ran_before(file, function, statement)
    ):
        return Safety.SAFE
    return Safety.UNSAFE


def _is_scripted(function: ast.AST | None) -> bool:
    """TorchScript compiles the function: what it makes of the new form isn't shown by running it in Python."""
    return any("jit" in ast.unparse(decorator) for decorator in getattr(function, "decorator_list", ()))


def _is_module_tensor(file: FileModel, node: ast.expr) -> bool:
    """Whether a value is what a module of the file registers under this name: a parameter on one path, a buffer on another."""
    owner = file.fact(node.value) if isinstance(node, ast.Attribute) else None
    if owner is None or not isinstance(owner.origin, ast.ClassDef) or owner.kind is not Kind.MODULE:
        return False
    values = file.classes.values(owner.origin, node.attr)  # type: ignore[attr-defined]  # an attribute, or there is no owner
    return bool(values) and all(_registers(file, value) for value in values)


def _registers(file: FileModel, value: ast.expr) -> bool:
    buffer = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "register_buffer"
    nothing = isinstance(value, ast.Constant) and value.value is None
    return buffer or nothing or file.kinds.is_kind(value, Kind.PARAMETER)


def _is_gradient(node: ast.expr) -> bool:
    """A gradient is written by nothing but backward: no graph holds it (unless it was made with create_graph)."""
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _is_applied(file: FileModel, name: str) -> bool:
    """Whether the function is passed to `module.apply`."""
    return any(
        isinstance(a, (ast.Name, ast.Attribute)) and ast.unparse(a).rpartition(".")[2] == name
        for call in file.methods("apply")
        for a in call.args
    )


def _ran_before(file: FileModel, function: ast.AST, statement: ast.stmt) -> bool:
    body = function.body  # type: ignore[attr-defined]  # a function
    return any(
        e.happening in {Happening.FORWARD, Happening.BACKWARD} and e.node.lineno < statement.lineno for e in file.training.events(body)
    )


def _run(file: FileModel, write: Write, writes: dict[int, Write]) -> list[Write]:
    """The write and those that directly follow it in its block, as far as they are equally safe."""
    run = [write]
    block, index = file.flow.place(write.statement)
    for statement in block[index + 1 :]:
        following = writes.get(id(statement))
        if following is None or following.safety is not write.safety or write.safety is Safety.REPORT:
            break
        run.append(following)
    return run


def _is_guarded(file: FileModel, statement: ast.stmt) -> bool:
    """Whether no_grad holds here already, by what is written around the statement itself."""
    return file.gradients.recording(statement, depth=0) is Recording.OFF


def _without_data(file: FileModel, write: Write) -> Iterator[Edit]:
    """Write to the tensor itself, and read the other tensors by `detach()`."""
    span = file.source.span
    yield ChangeTail(span(write.data), span(write.data.value))
    for node in own_nodes(write.statement):
        if isinstance(node, ast.Attribute) and node.attr == "data" and node is not write.data and file.kinds.is_tensor(node.value):
            yield ChangeTail(span(node), span(node.value), ("detach",))
