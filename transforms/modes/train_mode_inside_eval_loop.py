"""Rule `train-mode-inside-eval-loop`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.roles import EVALUATION_NAME, snake
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.model.index import Function
    from torchfix_codemods.rule import Finding

_SWITCHES = {Happening.EVAL, Happening.TRAIN, Happening.RESTORE}
_WANTS_TRAIN_MODE = re.compile(
    r"(^|_)(mc|bn|swa|gibbs)(_|$)|monte|dropout|calib|bn_stat|batch_?norm|uncertain|bayes|stochastic|ensemble|adapt"
)


class TrainModeInsideEvalLoop(Rule):
    """Evaluation loop that switches the model back to train mode before it runs it.

    ## Why
    Train mode is sticky: after `train()` inside the loop every following batch of the evaluation runs with dropout and
    changes the statistics of batch normalisation, whatever `eval()` did before the loop.

    ## Example
    ```python
    import torch


    @torch.no_grad()
    def validate(model: torch.nn.Module, loader):
        model.eval()
        hits = 0
        for x, y in loader:
            model.train()
            hits += (model(x).argmax(1) == y).sum().item()
        return hits
    ```
    ```python
    import torch


    @torch.no_grad()
    def validate(model: torch.nn.Module, loader):
        model.eval()
        hits = 0
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
        model.train()
        return hits
    ```

    ## Safety
    Only reported: train mode during an evaluation can be meant (dropout for uncertainty, online adaptation). Code that
    also trains, that speaks of dropout or of batch statistics, and switches of a part of the model, are left alone.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train
    """

    name = "train-mode-inside-eval-loop"
    category = Category.MODES
    safety = Safety.REPORT
    needles = (b"torch", b".train(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `train()` calls in (or above) loops that only evaluate, before a forward of the same model."""
        for call in file.methods("train") if not file.roles.in_tests else ():
            for event in file.training.at(call):
                if (
                    event.happening is Happening.TRAIN
                    and event.identity is not None
                    and event.subject is not None
                    and _is_wrong(file, event)
                ):
                    where = "inside the evaluation loop" if file.flow.loops(call) else "before the evaluation loop"
                    text = f"`{file.source.code(event.subject)}` goes back to train mode {where}"
                    yield self.finding(file, call, f"{text}: call it after the loop, or not at all")


def _is_wrong(file: FileModel, event: Event) -> bool:
    function = file.flow.function(event.node)
    fact = file.fact(event.subject) if event.subject is not None else None
    if fact is None or not fact.proven or _is_meant(file, event) or file.roles.is_framework_code(function or event.node):
        return False
    loops = file.flow.loops(event.node)
    if not loops:
        return isinstance(function, FUNCTIONS) and _precedes_loop(file, event, function)
    events = list(file.training.events(loops[0].body))
    if _trains(events) or not _evaluates(file, event, loops[0]):
        return False
    place = next(i for i, other in enumerate(events) if other.node is event.node)
    # After the end of the body comes its beginning.
    following = _telling(events[place + 1 :] + events[:place], event)
    return bool(following) and following[0].happening is Happening.FORWARD


def _precedes_loop(file: FileModel, event: Event, function: Function) -> bool:
    """Whether an evaluation switches to train mode above the loop that runs the model, and not for what stands between."""
    events = list(file.training.events(function.body))
    if _trains(events) or file.parent(file.flow.statement(event.node)) is not function:
        return False
    place = next(i for i, other in enumerate(events) if other.node is event.node)
    before, after = (_telling(part, event) for part in (events[:place], events[place + 1 :]))
    evaluates = EVALUATION_NAME.search(snake(function.name)) or (before and before[-1].happening is Happening.EVAL)
    runs = after and after[0].happening is Happening.FORWARD
    return bool(evaluates and runs and file.flow.loops(after[0].node))


def _trains(events: list[Event]) -> bool:
    return any(event.happening in {Happening.BACKWARD, Happening.STEP} for event in events)


def _telling(events: list[Event], switch: Event) -> list[Event]:
    """The runs and the switches of the same model."""
    wanted = {Happening.FORWARD, *_SWITCHES}
    return [event for event in events if event.identity == switch.identity and event.happening in wanted]


def _is_meant(file: FileModel, event: Event) -> bool:
    """Whether the names around say that train mode is wanted: dropout that samples, statistics that are measured anew."""
    around = [ancestor.name for ancestor in file.flow.ancestors(event.node) if isinstance(ancestor, (*FUNCTIONS, ast.ClassDef))]
    return any(_WANTS_TRAIN_MODE.search(snake(name)) for name in around)


def _evaluates(file: FileModel, event: Event, loop: ast.stmt) -> bool:
    """Whether the function is an evaluation by name, or has put the model into eval mode before the loop."""
    function = file.flow.function(event.node)
    if isinstance(function, FUNCTIONS) and EVALUATION_NAME.search(snake(function.name)):
        return True
    body = function.body if isinstance(function, FUNCTIONS) else file.tree.body
    before = [e for e in file.training.events(body, depth=0) if e.node.lineno < loop.lineno and e.identity == event.identity]
    modes = [e.happening for e in before if e.happening in _SWITCHES]
    return bool(modes) and modes[-1] is Happening.EVAL
