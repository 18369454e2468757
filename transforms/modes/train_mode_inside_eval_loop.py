"""Rule `train-mode-inside-eval-loop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchfix_codemods.model import Happening
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.roles import EVALUATION_NAME, snake
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from torchfix_codemods.model import Event, FileModel
    from torchfix_codemods.rule import Finding


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
    Only reported: train mode during an evaluation can be meant (dropout for uncertainty, online adaptation). Loops that
    also train, and switches of a part of the model, are left alone.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train
    """

    name = "train-mode-inside-eval-loop"
    category = Category.MODES
    safety = Safety.REPORT
    needles = (b"torch", b".train(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield `train()` calls in loops that only evaluate, before a forward of the same model."""
        for call in file.methods("train"):
            for event in file.training.at(call):
                if event.happening is Happening.TRAIN and event.subject is not None and self._is_wrong(file, event):
                    text = file.source.code(event.subject)
                    advice = "call it after the loop, or not at all"
                    yield self.finding(file, call, f"`{text}` goes back to train mode inside the evaluation loop: {advice}")

    def _is_wrong(self, file: FileModel, event: Event) -> bool:
        loops, fact = file.flow.loops(event.node), file.fact(event.subject) if event.subject is not None else None
        if not loops or fact is None or not fact.proven or file.roles.is_framework_code(file.flow.function(event.node) or event.node):
            return False
        events = list(file.training.events(loops[0].body))
        if any(e.happening in {Happening.BACKWARD, Happening.STEP} for e in events):
            return False
        place = next(i for i, e in enumerate(events) if e.node is event.node)
        later = [e for e in events[place + 1 :] if e.identity is not None and event.identity is not None]
        runs = any(e.happening is Happening.FORWARD and e.identity == event.identity for e in later)
        return runs and _evaluates(file, event, loops[0])


def _evaluates(file: FileModel, event: Event, loop: ast.stmt) -> bool:
    """Whether the function is an evaluation by name, or has put the model into eval mode before the loop."""
    function = file.flow.function(event.node)
    if isinstance(function, FUNCTIONS) and EVALUATION_NAME.search(snake(function.name)):
        return True
    body = function.body if isinstance(function, FUNCTIONS) else file.tree.body
    before = [e for e in file.training.events(body, depth=0) if e.node.lineno < loop.lineno and e.identity == event.identity]
    modes = [e.happening for e in before if e.happening in {Happening.EVAL, Happening.TRAIN, Happening.RESTORE}]
    return bool(modes) and modes[-1] is Happening.EVAL
