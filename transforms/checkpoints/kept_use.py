"""Where a kept state is used, and whether its model may have changed by then."""

from __future__ import annotations

import ast
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model import Happening
from torchfix_codemods.model.flow import leaves
from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.model.training import Event

    from .kept_state import Kept

_PASSES = frozenset({"copy.deepcopy", "copy.copy", "builtins.dict", "collections.OrderedDict"})


class UseKind(Enum):
    """What becomes of a kept state."""

    LOADED = auto()
    HANDED_ON = auto()
    """Returned, saved or, for a list of states, read at all."""


class Use(NamedTuple):
    """A place where a kept state is used."""

    node: ast.expr
    kind: UseKind
    receiver: ast.expr | None = None
    """What it is loaded into."""


def uses_of(file: FileModel, kept: Kept) -> list[Use]:
    """The places where a kept state is loaded, returned or saved."""
    found = [_use(file, node, node) for node in _reads(file, kept)]
    if kept.appended:
        found += [Use(node, UseKind.HANDED_ON) for node in _reads(file, kept) if isinstance(file.parent(node), (ast.Subscript, ast.For))]
    return [use for use in found if use is not None]


def _reads(file: FileModel, kept: Kept) -> Iterator[ast.expr]:
    place = kept.place
    holder = place.value if isinstance(place, ast.Subscript) else place
    text, inner = ast.unparse(holder), ast.unparse(place)
    for node in file.kinds.reads(holder.id) if isinstance(holder, ast.Name) else _attributes(file, holder, text):
        part = file.parent(node)
        if not _may_hold(file, kept, holder, node):
            continue
        if not isinstance(part, ast.Subscript) or kept.appended:
            yield node
        elif isinstance(part.ctx, ast.Load) and (ast.unparse(part) == inner or _key(part) == kept.key):
            yield part


def is_written_through(file: FileModel, kept: Kept) -> bool:
    """Whether values are written into the state: it is then a way to change the model, and meant to be live."""
    holder = kept.place
    if not isinstance(holder, ast.Name) or kept.appended:
        return False
    for read in file.kinds.reads(holder.id):
        part = file.parent(read)
        method = file.parent(part) if isinstance(part, ast.Subscript) and part.value is read else None
        if isinstance(part, ast.Subscript) and isinstance(method, ast.Attribute) and method.attr.endswith("_"):
            return True
    return False


def _may_hold(file: FileModel, kept: Kept, holder: ast.expr, node: ast.expr) -> bool:
    """Whether a read of a name may see this very assignment."""
    if not isinstance(holder, ast.Name) or not isinstance(node, ast.Name):
        return True
    if holder is not kept.place or kept.appended:
        return file.names.scope_of(holder) is file.names.scope_of(node)
    return holder in file.flow.reaching(node)


def _attributes(file: FileModel, holder: ast.expr, text: str) -> list[ast.Attribute]:
    alike = file.attributes(holder.attr) if isinstance(holder, ast.Attribute) else []
    owner = file.functions.enclosing_class(holder)
    return [n for n in alike if isinstance(n.ctx, ast.Load) and (ast.unparse(n) == text or file.functions.enclosing_class(n) is not owner)]


def _key(part: ast.Subscript) -> object:
    return part.slice.value if isinstance(part.slice, ast.Constant) else part


def _use(file: FileModel, node: ast.expr, inner: ast.AST) -> Use | None:
    """What the code around a read does with it, through containers and copies."""
    parent = file.parent(inner)
    if isinstance(parent, ast.Return):
        return Use(node, UseKind.HANDED_ON)
    if isinstance(parent, (ast.Dict, ast.Tuple, ast.List, ast.keyword, ast.IfExp)):
        return _use(file, node, parent)
    if not isinstance(parent, ast.Call) or parent.func is inner:
        return None
    name = file.qualified(parent.func)
    if name in _PASSES:
        return _use(file, node, parent)
    if isinstance(parent.func, ast.Attribute) and parent.func.attr == "load_state_dict":
        return Use(node, UseKind.LOADED, parent.func.value)
    return Use(node, UseKind.HANDED_ON) if name == "torch.save" else None


def changes_before(file: FileModel, kept: Kept, use: Use) -> bool:
    """Whether the model may have been trained between the assignment and the use."""
    function = file.flow.function(kept.value)
    if file.flow.function(use.node) is not function:
        return _changes_in_loops(file, kept, _of_one_model(file, kept, _loops_of_callers(file, kept.value)))
    start, end = kept.value.lineno, use.node.lineno
    around, using = _of_one_model(file, kept, file.flow.loops(kept.value)), file.flow.loops(use.node)
    outside = [loop for loop in around if loop not in using]
    if _changes_in_loops(file, kept, outside):
        return True
    body = function.body if isinstance(function, FUNCTIONS) else file.tree.body
    events = list(_changes(file, kept, body))
    if any(start < event.node.lineno < end for event in events) or _is_written_between(file, kept, end):
        return True
    later = [loop for loop in using if loop not in around]
    if any(_holds(loop, event) for loop in later for event in events):
        return True
    # In one loop, a state that is used above its assignment is that of the round before.
    shared = [loop for loop in around if loop in using and end < start]
    return any(_holds(loop, event) and not end < event.node.lineno < start for loop in shared for event in events)


def _of_one_model(file: FileModel, kept: Kept, loops: list[Loop]) -> list[Loop]:
    """The loops that keep the state of one and the same model, round after round."""
    root = kept.owner
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    text = ast.unparse(kept.owner)
    names = [n for n in file.index.all(ast.Name) if isinstance(n.ctx, ast.Store) and isinstance(root, ast.Name) and n.id == root.id]
    stored = [n for n in file.index.all(ast.Attribute) if isinstance(n.ctx, ast.Store) and ast.unparse(n) == text]
    made = {id(loop) for binding in [*names, *stored] for loop in [*file.flow.loops(binding), file.parent(binding)]}
    return [loop for loop in loops if id(loop) not in made]


def _loops_of_callers(file: FileModel, node: ast.expr) -> list[Loop]:
    """The loops around a place, and around the calls of its function where the function itself has none."""
    loops, function = file.flow.loops(node), file.flow.function(node)
    if loops or not isinstance(function, FUNCTIONS):
        return loops
    return [loop for call in file.functions.calls_to(function) for loop in file.flow.loops(call)]


def _changes_in_loops(file: FileModel, kept: Kept, loops: list[Loop]) -> bool:
    """Whether rounds after the one that keeps the state go on training, or steps of the same round do."""
    for loop in loops:
        changes = [event for event in _changes(file, kept, loop.body) if not _holds_node(kept.value, event.node)]
        again = kept.appended or is_conditional(file, kept.value, loop)
        if changes and (again or any(event.node.lineno > kept.value.lineno for event in changes)):
            return True
    return False


def is_conditional(file: FileModel, node: ast.expr, loop: Loop | None) -> bool:
    """Whether a place in a loop is reached in some rounds only, and the loop then goes on."""
    for ancestor in file.flow.ancestors(node):
        if ancestor is loop or isinstance(ancestor, FUNCTIONS):
            return False
        if isinstance(ancestor, ast.If):
            inside = ancestor.body if any(_holds_node(s, node) for s in ancestor.body) else ancestor.orelse
            return not leaves(inside)
    return False


def _changes(file: FileModel, kept: Kept, body: list[ast.stmt]) -> Iterator[Event]:
    """The steps that may change the model; a backward tells of a step that isn't shown."""
    events = list(file.training.events(body))
    steps = [event for event in events if event.happening is Happening.STEP]
    for event in steps or [event for event in events if event.happening is Happening.BACKWARD]:
        if not _is_of_another(file, kept, event):
            yield event


def _is_of_another(file: FileModel, kept: Kept, event: Event) -> bool:
    """A step of an optimizer that is known to have the parameters of another model."""
    if event.happening is not Happening.STEP or not event.is_here or event.subject is None:
        return False
    optimized, owner = file.optimized(event.subject), file.identities.of(kept.owner)
    if optimized is None or owner is None:
        return False
    same_optimizer = file.identities.of(event.subject) == owner
    return not (same_optimizer or optimized.is_part_of(owner) or owner.is_part_of(optimized))


def _is_written_between(file: FileModel, kept: Kept, end: int) -> bool:
    """A write in place to a part of the model: `model.bias.add_(1)`."""
    model = f"{ast.unparse(kept.owner)}."
    for call in file.index.all(ast.Call):
        if kept.value.lineno < call.lineno < end and isinstance(call.func, ast.Attribute):
            method = call.func.attr
            if method.endswith("_") and not method.endswith("__") and ast.unparse(call.func.value).startswith(model):
                return True
    return False


def _holds(loop: Loop, event: Event) -> bool:
    return _holds_node(loop, event.node)


def _holds_node(outer: ast.AST, node: ast.AST) -> bool:
    return any(inner is node for inner in ast.walk(outer))
