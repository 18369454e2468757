"""Rule `eval-missing-eval-mode`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import InsertAfter, InsertBefore
from torchfix_codemods.effects import RUNS_IN_EVAL_MODE, RUNS_IN_TRAIN_MODE
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.model.roles import ENOUGH, EVALUATION_HINT, snake
from torchfix_codemods.rule import Category, Rule, Safety

from .inference import inferences
from .mode_switch import body_after_docstring, flag_names, is_generator, is_rebound, restore_edits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function
    from torchfix_codemods.model.roles import Evaluation
    from torchfix_codemods.rule import Finding

_TRAIN_MODE_ON_PURPOSE = re.compile(r"(?<![a-z])(mc|monte|carlo|dropout|swa|(re)?calib\w*|update_bn|bn_stat\w*)(?![a-z])", re.IGNORECASE)

_SWITCHES = {Happening.EVAL, Happening.TRAIN, Happening.RESTORE}


class EvalMissingEvalMode(Rule):
    """Evaluation that leaves the model in train mode.

    ## Why
    A module starts in train mode and stays there: dropout then drops at random, and batch normalisation both uses and
    changes its running statistics, with every batch of the evaluation.

    ## Example
    ```python
    import torch


    @torch.no_grad()
    def evaluate(model: torch.nn.Module, loader):
        correct = 0
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
        return correct
    ```
    ```python
    import torch


    @torch.no_grad()
    def evaluate(model: torch.nn.Module, loader):
        was_training = model.training
        model.eval()
        correct = 0
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
        model.train(was_training)
        return correct
    ```

    ## Safety
    Unsafe: the numbers change, which is the intent. The mode that was is restored, so that callers notice nothing.
    Kept where callers switch the mode, where train mode is the point (Monte Carlo dropout, recalibration), and for
    framework hooks. A script that loads weights and predicts, and trains nothing, gets an `eval()` after the load. Only
    reported where it isn't clear that the function evaluates a module, and in generators.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval
    """

    name = "eval-missing-eval-mode"
    category = Category.MODES
    safety = Safety.UNSAFE
    effects = (
        RUNS_IN_EVAL_MODE,
        RUNS_IN_TRAIN_MODE,
    )
    needles = (b"torch",)
    pattern = re.compile(EVALUATION_HINT.pattern + rb"|load_state_dict", re.IGNORECASE)

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield evaluation functions that never switch the mode of the model they run, and runs of models just loaded."""
        loaded = {file.flow.function(found.load): found for found in inferences(file) if not _is_purpose_of_file(file)}
        for load, model, forward in loaded.values():
            message = f"`{model.id}` predicts in train mode, in which a module is made: call eval() once its weights are loaded"
            yield self.finding(file, forward, message, InsertAfter(file.source.span(load), f"{model.id}.eval()"))
        for function in file.index.functions():
            if function in loaded:
                continue
            evaluation = file.roles.evaluation(function)
            if evaluation is None or evaluation.score - 3 * evaluation.switches_mode < ENOUGH or _is_on_purpose(file, function):
                continue
            models = _models(evaluation)
            if models and not _is_switched(file, function, list(models.values())):
                yield self._finding(file, evaluation, models)

    def _finding(self, file: FileModel, evaluation: Evaluation, models: dict[str, ast.expr]) -> Finding:
        function, forward = evaluation.function, evaluation.forwards[0].node
        names = ", ".join(f"`{name}`" for name in models)
        reason = _unclear(file, evaluation, models)
        if reason:
            return self.finding(
                file, forward, f"{names} runs in whatever mode it is in; {reason}: call eval() before, and restore the mode after"
            )
        flags = dict(zip(models, flag_names(file, function, list(models)), strict=True))
        body = body_after_docstring(function)
        switch = "\n".join(f"{flag} = {name}.training\n{name}.eval()" for name, flag in flags.items())
        edits: list[Edit] = [InsertBefore(file.source.span(body[0]), switch), *restore_edits(file, body, flags)]
        return self.finding(file, forward, f"`{function.name}` runs {names} in train mode: switch to eval() and back", *edits)


def _is_on_purpose(file: FileModel, function: Function) -> bool:
    words = snake(function.name) + "\n" + (ast.get_docstring(function) or "")
    return _speaks_of_train_mode(file, words, function.lineno, function.end_lineno or function.lineno)


def _is_purpose_of_file(file: FileModel) -> bool:
    names = "\n".join(snake(function.name) for function in file.index.functions())
    return _speaks_of_train_mode(file, f"{names}\n{ast.get_docstring(file.tree) or ''}", 1, file.source.text.count("\n") + 1)


def _speaks_of_train_mode(file: FileModel, words: str, first: int, last: int) -> bool:
    comments = [line.partition("#")[2] for line in (file.source.line(n) for n in range(first, last + 1)) if "#" in line]
    return bool(_TRAIN_MODE_ON_PURPOSE.search("\n".join([words, *comments])))


def _models(evaluation: Evaluation) -> dict[str, ast.expr]:
    """The models that the function runs, by how they are written; parts of a module count as the module."""
    models: dict[str, ast.expr] = {}
    for event in evaluation.forwards:
        if event.subject is not None and isinstance(event.subject, (ast.Name, ast.Attribute)):
            models.setdefault(ast.unparse(event.subject), event.subject)
    return models


def _is_switched(file: FileModel, function: Function, models: list[ast.expr]) -> bool:
    """Whether the function, its callers or the construction of the model decide about its mode."""
    own = {e.happening for e in file.training.events(function.body)}
    if own & _SWITCHES:
        return True
    calls = [*((file, call) for call in file.functions.calls_to(function)), *file.kinds.imported.callers(function)]
    if calls and all(_caller_switches(model, call) for model, call in calls):
        return True
    return any(_is_born_in_eval(file, model) for model in models)


def _caller_switches(file: FileModel, call: ast.Call, depth: int = 3) -> bool:
    """Whether a model is put into eval mode before a call, in the caller or in the callers of that."""
    caller = file.flow.function(call)
    body = caller.body if isinstance(caller, (ast.FunctionDef, ast.AsyncFunctionDef)) else file.tree.body
    events = [e for e in file.training.events(body) if e.node.lineno <= call.lineno and e.node is not call]
    modes = [e.happening for e in events if e.happening in _SWITCHES]
    if modes:
        return modes[-1] is not Happening.TRAIN
    if not isinstance(caller, ast.FunctionDef) or not depth:
        return False
    calls = file.functions.calls_to(caller)
    return bool(calls) and all(_caller_switches(file, outer, depth - 1) for outer in calls)


def _is_born_in_eval(file: FileModel, model: ast.expr) -> bool:
    """`model = Net().eval()`, or an `eval()` on the same object elsewhere and no `train()` in the file."""
    identity = file.identities.of(model)
    events = [e for call in file.methods("eval", "train") for e in file.training.at(call)]
    mine = [e for e in events if e.identity is None or identity is None or identity.is_part_of(e.identity)]
    trains = any(e.happening is Happening.TRAIN for e in events)
    return not trains and any(e.happening is Happening.EVAL for e in mine)


def _unclear(file: FileModel, evaluation: Evaluation, models: dict[str, ast.expr]) -> str:
    """Why no fix is certain; empty when one is."""
    function = evaluation.function
    facts = [file.fact(model) for model in models.values()]
    if not all(fact is not None and fact.proven and fact.kind is Kind.MODULE for fact in facts):
        return "if that is a torch module"
    if "self" in models:
        return "its callers decide about the mode of a module that runs itself"
    if not evaluation.names_itself and not file.functions.calls_to(function) and not file.kinds.imported.callers(function):
        return "if this is an evaluation"
    if isinstance(function, ast.AsyncFunctionDef) or is_generator(function):
        return "the function is suspended in between"
    if any(is_rebound(function, model) for model in models.values()):
        return "the function makes or replaces the model"
    if any(_ensemble(name) for name in models):
        return "if its parts have a mode"
    return ""


def _ensemble(name: str) -> bool:
    return "ensemble" in name.lower()
