"""Gradients that are meant to add up: a backward in every round, a step in every k-th."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchfix_codemods.model import Happening
from torchfix_codemods.model.flow import LOOPS, leaves
from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.model.index import Function

    Region: TypeAlias = Loop | Function | ast.Module

ENGINES = ("deepspeed", "colossalai", "smdistributed", "accelerate", "lightning", "pytorch_lightning", "ignite", "fairscale", "megatron")
"""Packages whose wrappers decide themselves when an optimizer steps and when gradients are cleared."""


class Accumulation(NamedTuple):
    """One optimizer that steps in every k-th round of a loop, or of a function that is called in one."""

    region: Region
    """What runs again and again."""
    branch: list[ast.stmt]
    """What runs only in every k-th round."""
    backwards: list[Event]
    """The backwards of every round."""
    step: Event
    period: ast.expr
    """The k."""


def accumulations(file: FileModel) -> Iterator[Accumulation]:
    """The places where gradients are gathered over several backwards; none in the code of frameworks, which do it themselves."""
    if any(file.names.imports(engine) for engine in ENGINES):
        return
    for branching in file.index.all(ast.If):
        period = _period(file, branching)
        if period is None or file.roles.is_framework_code(file.flow.function(branching) or file.tree):
            continue
        branch = _branch(file, branching)
        inside = list(file.training.events(branch))
        steps = [e for e in inside if e.happening is Happening.STEP and _has_no_closure(e)]
        if not steps or _happens(inside, Happening.BACKWARD):
            continue
        region = _region(file, branching)
        outside = [e for e in file.training.events(region.body) if not _is_in(file, e.node, branch)]
        if not _happens(outside, Happening.STEP):
            backwards = [e for e in outside if e.happening is Happening.BACKWARD]
            if _run_in_every_round(file, backwards, branching):
                yield Accumulation(region, branch, backwards, steps[0], period)


def clears(file: FileModel, accumulation: Accumulation) -> list[Event]:
    """What clears gradients in the rounds without a step."""
    found = [e for e in file.training.events(accumulation.region.body) if e.happening is Happening.CLEAR]
    return [e for e in found if not _is_in(file, e.node, accumulation.branch)]


def loops_before_a_step(file: FileModel) -> Iterator[tuple[Loop, Event]]:
    """Loops of nothing but backwards whose optimizer steps once after them, with the one backward of each round."""
    if any(file.names.imports(engine) for engine in ENGINES):
        return
    for call in file.methods("backward"):
        loop = next(iter(file.flow.loops(call)), None)
        events = list(file.training.events(loop.body)) if loop is not None else []
        backwards = [e for e in events if e.happening is Happening.BACKWARD]
        quiet = not _happens(events, Happening.STEP) and not _happens(events, Happening.CLEAR)
        if loop is None or len(backwards) != 1 or backwards[0].node is not call or not quiet or conditions(file, call):
            continue
        block, index = file.flow.place(loop)
        following = list(file.training.events(block[index + 1 :], depth=0))
        steps = [e for e in following if e.happening in {Happening.BACKWARD, Happening.STEP}]
        if steps and steps[0].happening is Happening.STEP and _has_no_closure(steps[0]) and not _is_engine(file, backwards[0].origin):
            yield loop, backwards[0]


def conditions(file: FileModel, node: ast.AST) -> list[ast.If]:
    """The branches that a node stands in, inside the loop or function around it."""
    found = []
    for ancestor in file.flow.ancestors(node):
        if isinstance(ancestor, (*LOOPS, *FUNCTIONS)):
            break
        if isinstance(ancestor, ast.If):
            found.append(ancestor)
    return found


def _period(file: FileModel, branching: ast.If) -> ast.expr | None:
    """The k of a test such as `(i + 1) % k == 0`, also behind a name, and of `count == k` with a counter."""
    test: ast.expr = branching.test
    if isinstance(test, ast.Name):
        definitions = [file.flow.definition(binding) for binding in file.flow.reaching(test)]
        if len(definitions) != 1 or definitions[0].value is None:
            return None
        test = definitions[0].value
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not _is_text(node.left):
            return node.right
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.GtE)) and _is_counter(file, node.left):
            return node.comparators[0]
    return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_counter(file: FileModel, node: ast.expr) -> bool:
    """Whether a name goes up by one in each round, and back to nothing."""
    bindings = file.names.bindings(node) if isinstance(node, ast.Name) else []
    statements = [file.flow.statement(binding) for binding in bindings]
    resets = [s for s in statements if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant) and s.value.value == 0]
    return len(resets) > 1 and any(isinstance(s, ast.AugAssign) for s in statements)


def _branch(file: FileModel, branching: ast.If) -> list[ast.stmt]:
    """What runs in every k-th round: the body, or what follows a body that only begins the next round."""
    if len(branching.body) == 1 and leaves(branching.body) and not branching.orelse:
        block, index = file.flow.place(branching)
        return block[index + 1 :]
    return branching.body


def _has_no_closure(step: Event) -> bool:
    call = step.origin
    return isinstance(call, ast.Call) and all(argument is step.subject for argument in call.args) and not call.keywords


def _region(file: FileModel, node: ast.AST) -> Region:
    around = (a for a in file.flow.ancestors(node) if isinstance(a, (*LOOPS, *FUNCTIONS, ast.Module)))
    return next(around)


def _is_in(file: FileModel, node: ast.AST, block: list[ast.stmt]) -> bool:
    return any(inner is statement for inner in (node, *file.flow.ancestors(node)) for statement in block)


def _happens(events: list[Event], happening: Happening) -> bool:
    return any(event.happening is happening for event in events)


def _run_in_every_round(file: FileModel, backwards: list[Event], branching: ast.If) -> bool:
    """One backward without a condition of its own; or one in each branch of a condition, as for mixed precision."""
    if not backwards or any(_is_engine(file, event.origin) for event in backwards):
        return False
    around = conditions(file, branching)
    own = [[c for c in conditions(file, event.node) if c not in around] for event in backwards]
    if len(backwards) == 1:
        return own == [[]]
    either = own[0] == own[1] and len(own[0]) == 1
    return (
        len(backwards) == 2
        and either
        and _is_in(file, backwards[0].node, own[0][0].body) != _is_in(file, backwards[1].node, own[0][0].body)
    )


def _is_engine(file: FileModel, call: ast.AST) -> bool:
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and file.training.is_engine(call.func.value)
