"""Where the eval mode of a model leaks into its training: in a file, and through calls from other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening, Recording
from torchfix_codemods.model.index import FUNCTIONS

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.flow import Loop
    from torchfix_codemods.model.identity import Identity
    from torchfix_codemods.model.index import Function

_SWITCHES = {Happening.TRAIN, Happening.RESTORE}


def leaks_in(file: FileModel) -> Iterator[Event]:
    """The eval() events in all loops of a file after which the loop goes on training the same model."""
    for loop in file.loops:
        if not file.roles.is_framework_code(file.flow.function(loop) or loop):
            yield from _leaks(file, loop)


def leaks_outside(file: FileModel, function: ast.AST | None) -> Iterator[Event]:
    """The eval() events of a function after which a caller in another file goes on training."""
    if not isinstance(function, FUNCTIONS):
        return
    own = [e for e in file.training.events(function.body, depth=0) if e.happening is Happening.EVAL and e.identity is not None]
    sticky = [e for e in own if e.identity and e.identity.anchor[0] is function and not e.identity.attributes and _stays(file, function, e)]
    for model, call in file.kinds.imported.callers(function) if sticky else ():
        passed = [leak.subject for leak in leaks_in(model) if leak.node is call and leak.elsewhere is not None]
        for event in sticky:
            given = event.identity and model.kinds.imported.argument(call, event.identity.anchor[1])
            if given is not None and any(given is subject for subject in passed):
                # It happens in the other file's loop, and originates here.
                yield event._replace(node=call)


def _stays(file: FileModel, function: Function, switch: Event) -> bool:
    """Whether nothing in the function sets the mode again after an eval()."""
    later = [e for e in file.training.events(function.body) if e.node.lineno > switch.node.lineno]
    return not any(e.happening in _SWITCHES and (e.identity is None or e.identity == switch.identity) for e in later)


def _leaks(file: FileModel, loop: Loop) -> Iterator[Event]:
    """The eval() events in a loop after which the same model is trained without train() in between."""
    events = list(file.training.events(loop.body))
    if not any(e.happening is Happening.BACKWARD for e in events):
        return
    for i, event in enumerate(events):
        if event.happening is Happening.EVAL and event.identity is not None and _innermost_training_loop(file, event) is loop:
            if _trains_before_switch(file, events[i + 1 :] + events[: i + 1], event.identity):
                yield event


def _innermost_training_loop(file: FileModel, event: Event) -> Loop | None:
    """The smallest loop around the event's place that runs a backward."""
    for loop in file.flow.loops(event.node):
        if any(e.happening is Happening.BACKWARD for e in file.training.events(loop.body)):
            return loop
    return None


def _trains_before_switch(file: FileModel, following: list[Event], model: Identity) -> bool:
    """Whether a recorded forward of the model and then a backward come before its mode is set again."""
    ran = False
    for event in following:
        mine = event.identity is not None and (model.is_part_of(event.identity) or event.identity.is_part_of(model))
        if event.happening in _SWITCHES and (event.identity is None or model.is_part_of(event.identity)):
            return False
        if event.happening is Happening.EVAL and mine:
            ran = False
        elif event.happening is Happening.FORWARD and mine:
            ran = not event.guarded and file.gradients.recording(event.origin) is Recording.ON
        elif event.happening is Happening.BACKWARD and ran:
            return True
    return False
