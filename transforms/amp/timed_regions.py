"""Work on a GPU between two readings of the clock, whose difference is told as the time of a forward."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model import Happening
from torchfix_codemods.model.training import own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel

_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.process_time", "timeit.default_timer"})
_MEASURES = re.compile(r"infer|latenc|forward|fps|time per", re.IGNORECASE)
_WAITS = re.compile(r"sync|\.item\(|\.cpu\(|\.numpy\(|\.tolist\(|print\(")
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
_STRAIGHT = (*_SIMPLE, ast.With)


class TimedRegion(NamedTuple):
    """The two statements that read the clock."""

    start: ast.Assign
    end: ast.stmt


def timed_regions(file: FileModel) -> Iterator[TimedRegion]:
    """The timed work of a file that nothing waits for."""
    for start in file.index.all(ast.Assign):
        if _reads_clock(file, start.value) and len(start.targets) == 1 and isinstance(start.targets[0], ast.Name):
            region = _region(file, start, start.targets[0].id)
            if region is not None:
                yield region


def _region(file: FileModel, start: ast.Assign, name: str) -> TimedRegion | None:
    block, index = file.flow.place(start)
    for place, end in enumerate(block[index + 1 :], index + 1):
        between = block[index + 1 : place]
        if any(_reads_clock(file, node) for node in ast.walk(end)):
            told = isinstance(end, _SIMPLE) and _is_told(file, name, block[place:])
            return TimedRegion(start, end) if told and _works(file, between) and not _waits(between) else None
        if not isinstance(end, _STRAIGHT) and not _repeats(file, end):
            return None
    return None


def _repeats(file: FileModel, statement: ast.stmt) -> bool:
    """Whether a loop does the same work several times: over a range, not over data that is loaded in between."""
    over = statement.iter if isinstance(statement, ast.For) else None
    return isinstance(over, ast.Call) and file.qualified(over.func) == "builtins.range"


def _reads_clock(file: FileModel, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and file.qualified(node.func) in _CLOCKS


def _waits(between: list[ast.stmt]) -> bool:
    return any(_WAITS.search(ast.unparse(statement)) for statement in between)


def _works(file: FileModel, between: list[ast.stmt]) -> bool:
    """Whether a model runs, or something is computed of tensors, where a GPU may do it."""
    if any(e.happening is Happening.FORWARD and _may_be_moved(file, e) for e in file.training.events(between, depth=0)):
        return True
    nodes = (node for statement in between for node in own_nodes(statement) if isinstance(node, (ast.Call, ast.BinOp)))
    return any(_computes(file, node) and file.devices.moved(node) for node in nodes)


def _computes(file: FileModel, node: ast.Call | ast.BinOp) -> bool:
    """Whether tensors are computed with, and not only moved or measured."""
    if isinstance(node, ast.BinOp):
        return True
    moves = isinstance(node.func, ast.Attribute) and node.func.attr in {"to", "cuda", "size", "append"}
    return not moves and not (file.qualified(node.func) or "").startswith(("builtins.", "time."))


def _may_be_moved(file: FileModel, event: Event) -> bool:
    if isinstance(event.node, ast.Call) and file.devices.moved(event.node):
        return True
    function = file.flow.function(event.node)
    # A model that is passed in may stand anywhere, and then the function is likely to be told where.
    given = event.identity is not None and (event.identity.anchor[0] is function or bool(event.identity.attributes))
    return given and (b"device" in file.source.data or b".cuda(" in file.source.data)


def _is_told(file: FileModel, start: str, following: list[ast.stmt]) -> bool:
    """Whether what is made of the two readings is printed, kept or named as the time of a forward."""
    tracked, read, measures = {start}, False, False
    for number, statement in enumerate(following):
        if not isinstance(statement, _SIMPLE):
            break
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        if number == 0 or names & tracked:
            read |= start in names
            measures |= _MEASURES.search(file.source.code(statement)) is not None
            tracked |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return read and measures


def is_in_training_loop(file: FileModel, region: TimedRegion) -> bool:
    """Whether each round of a loop that trains would wait."""
    return any(e.happening is Happening.BACKWARD for loop in file.flow.loops(region.start) for e in file.training.events(loop.body))
