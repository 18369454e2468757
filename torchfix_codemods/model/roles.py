"""The role a function plays: whether it evaluates a model, and what forbids to treat it so."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from .facts import Kind
from .index import FUNCTIONS
from .training import Happening, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .backflow import Backflow
    from .identity import Identity
    from .index import Function
    from .kinds import Kinds
    from .training import Event, Training

ENOUGH = 4
"""The score from which a function counts as an evaluation."""

EVALUATION_NAME = re.compile(r"(^|_)(eval|evaluate|evaluation|val|valid|validate|validation|test|infer|inference|predict)(_|\d|$)")
EVALUATION_HINT = re.compile(
    rb"\.eval\(|\.train\(|def \w*(eval|val|test|infer|predict|sample|generat|extract|feature|score|accuracy)", re.IGNORECASE
)
"""What stands in every file with an evaluation: a switch of mode, or a function whose name speaks of one."""

_RELATED_NAME = re.compile(r"sample|generate|extract|feature|score|accuracy")
_BATCHES = re.compile(r"load|iter|batch|data", re.IGNORECASE)
_METRICS = re.compile(r"accuracy|auc|f1|precision|recall|confusion|metric|mae|rmse|psnr|ssim|bleu|iou", re.IGNORECASE)
_METRIC_METHODS = frozenset({"argmax", "topk", "item", "eq"})
_NEEDS_GRADIENT = re.compile(
    r"attack|perturb|fgsm|pgd|adversar|saliency|gradcam|grad_cam|attribut|explain|adapt|finetune|fine_tune|inner_loop|penalty"
)
_GRADIENT_NAMES = frozenset(
    """
    grad jacobian hessian functional_call requires_grad_ enable_grad set_grad_enabled create_graph retain_grad
    register_backward_hook register_full_backward_hook register_hook vjp jvp jacrev
    """.split()
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A function that runs a model to evaluate it."""

    function: Function
    score: int
    forwards: tuple[Event, ...]
    """The function's own calls of modules, proven or likely."""
    switches_mode: bool
    """Whether it puts a model that it runs into eval mode before the first forward."""

    @property
    def names_itself(self) -> bool:
        """Whether the function's name says that it evaluates."""
        return bool(EVALUATION_NAME.search(snake(self.function.name)))


class Roles:
    """Roles of the functions of one file."""

    def __init__(self, kinds: Kinds, training: Training, backflow: Backflow, path: str) -> None:
        self._kinds, self._training, self._backflow = kinds, training, backflow
        self._in_tests = is_test_path(path)
        self._known: dict[ast.AST, Evaluation | None] = {}

    def evaluation(self, function: Function) -> Evaluation | None:
        """The function as an evaluation; None when it isn't one, or something in it may need gradients or train mode."""
        if function not in self._known:
            self._known[function] = self._evaluate(function)
        return self._known[function]

    def _evaluate(self, function: Function) -> Evaluation | None:
        if self._in_tests or self.is_framework_code(function) or self._is_unit_test(function):
            return None
        if not self._may_evaluate(function):
            return None
        circumstances = self._circumstances(function)
        if circumstances + 3 * (function in self._mode_switchers) < ENOUGH:
            return None
        own = list(self._training.events(function.body, depth=0))
        forwards = tuple(e for e in own if e.happening is Happening.FORWARD and self._is_run_from_outside(e, function))
        switches = self._switches(own, forwards)
        score = 3 * switches + circumstances
        if not forwards or score < ENOUGH or any(True for _ in self._vetoes(function, own)):
            return None
        return Evaluation(function, score, forwards, switches)

    def may_run_without_gradients(self, function: Function) -> bool:
        """Whether nothing in a function, or done with its results, needs gradients."""
        if self._in_tests or self.is_framework_code(function) or self._is_unit_test(function):
            return False
        return not any(True for _ in self._vetoes(function, list(self._training.events(function.body, depth=0))))

    def _may_evaluate(self, function: Function) -> bool:
        """A look at names alone, which spares most functions the questions: without `eval()`, the name has to say something."""
        name = snake(function.name)
        return function in self._mode_switchers or bool(EVALUATION_NAME.search(name) or _RELATED_NAME.search(name))

    @cached_property
    def _mode_switchers(self) -> set[ast.AST | None]:
        switches = (node for node in self._kinds.index.all(ast.Attribute) if node.attr in {"eval", "train"})
        return {self._kinds.flow.function(node) for node in switches}

    def _is_unit_test(self, function: Function) -> bool:
        definition = self._kinds.functions.enclosing_class(function)
        bases = self._kinds.classes.lineage(definition) if definition else ()
        return any(isinstance(base, str) and base.endswith("TestCase") for base in bases)

    def _is_run_from_outside(self, event: Event, function: Function) -> bool:
        """A module's own method that runs its layers is part of a forward; one that runs the whole module is not."""
        definition = self._kinds.classes.owner(function)
        if definition is None or not self._kinds.classes.is_module(definition):
            return True
        return event.identity is not None and event.identity.anchor == (definition, "self") and not event.identity.attributes

    def _switches(self, own: list[Event], forwards: tuple[Event, ...]) -> bool:
        for event in own:
            if event.happening is Happening.EVAL and event.identity and self._is_unconditional(event):
                if any(_is_same_or_part(f.identity, event.identity) and f.node.lineno >= event.node.lineno for f in forwards):
                    return True
        return False

    def _is_unconditional(self, event: Event) -> bool:
        for ancestor in self._kinds.flow.ancestors(event.node):
            if isinstance(ancestor, FUNCTIONS):
                return True
            if isinstance(ancestor, (ast.If, ast.While, ast.ExceptHandler, ast.IfExp, ast.BoolOp)):
                return False
        return True

    def _circumstances(self, function: Function) -> int:
        name = snake(function.name)
        score = 2 * bool(EVALUATION_NAME.search(name)) + bool(_RELATED_NAME.search(name))
        nodes = [node for statement in function.body for node in own_nodes(statement)]
        score += any(isinstance(n, (ast.For, ast.AsyncFor)) and _BATCHES.search(ast.unparse(n.iter)) is not None for n in nodes)
        score += any(_measures(n) for n in nodes)
        return score + 1  # no optimizer in sight: one in sight is a veto

    def _vetoes(self, function: Function, own: list[Event]) -> Iterator[str]:
        if any(e.happening in {Happening.BACKWARD, Happening.STEP} for e in self._training.events(function.body)):
            yield "trains"
        if any(self._backflow.of_result(call) for call in self._kinds.functions.calls_to(function)):
            yield "gives what a caller differentiates"
        if any(self.needs_gradient(node) for node in self._reachable(function)):
            yield "needs gradients"
        if any(self._is_optimizer(node) for node in ast.walk(function)):
            yield "has an optimizer"
        first = min((e.node.lineno for e in own if e.happening is Happening.FORWARD), default=0)
        last = max((e.node.lineno for e in own if e.happening is Happening.FORWARD), default=0)
        if any(e.happening is Happening.TRAIN and e.node.lineno <= last for e in own) and first:
            yield "runs the model in train mode"
        if any(model.backflow.of_result(call) for model, call in self._kinds.imported.callers(function)):
            yield "gives what a caller in another file differentiates"

    def _reachable(self, function: Function, depth: int = 3) -> Iterator[ast.AST]:
        """The nodes of a function and of the functions of the file that it calls."""
        for node in ast.walk(function):
            yield node
            if depth and isinstance(node, ast.Call):
                for target in self._kinds.functions.targets(node):
                    if target.name != "forward" and target is not function:
                        yield from self._reachable(target, depth - 1)

    def needs_gradient(self, node: ast.AST) -> bool:
        """Whether a node is a sign that gradients are needed around it."""
        if isinstance(node, ast.keyword):
            return node.arg in {"create_graph", "retain_graph"} or (
                node.arg == "requires_grad" and not (isinstance(node.value, ast.Constant) and node.value.value is False)
            )
        if isinstance(node, ast.Attribute):
            called = self._kinds.names.qualified(node) or ""
            return (node.attr in _GRADIENT_NAMES and called != "torch.no_grad") or bool(_NEEDS_GRADIENT.search(node.attr.lower()))
        if isinstance(node, ast.Name):
            name = self._kinds.names.qualified(node) or node.id
            return name.rpartition(".")[2] in _GRADIENT_NAMES or bool(_NEEDS_GRADIENT.search(node.id.lower()))
        return isinstance(node, FUNCTIONS) and bool(_NEEDS_GRADIENT.search(node.name.lower()))

    def _is_optimizer(self, node: ast.AST) -> bool:
        if isinstance(node, ast.arg):
            fact = self._kinds.fact(node)
            return fact is not None and fact.kind is Kind.OPTIMIZER
        if isinstance(node, ast.Call):
            fact = self._kinds.fact(node)
            return fact is not None and fact.kind in {Kind.OPTIMIZER, Kind.SCALER}
        return (
            isinstance(node, ast.Name)
            and node.id.lower() in {"optimizer", "optim", "opt_g", "opt_d"}
            and self._kinds.names.qualified(node) is None
        )

    def is_framework_code(self, function: ast.AST) -> bool:
        """Whether a training framework calls the function: a hook of one, or a step given to an ignite engine."""
        definition = self._kinds.functions.enclosing_class(function)
        if definition is not None and self._kinds.classes.is_framework(definition):
            return True
        return isinstance(function, FUNCTIONS) and any(function in self._kinds.names.bindings(n) for n in self._engine_arguments)

    @cached_property
    def _engine_arguments(self) -> list[ast.Name]:
        engines = [c for c in self._kinds.index.all(ast.Call) if (self._kinds.names.qualified(c.func) or "").startswith("ignite.")]
        return [argument for call in engines for argument in call.args if isinstance(argument, ast.Name)]

    @property
    def in_tests(self) -> bool:
        """Whether the file is a test module."""
        return self._in_tests


def _is_same_or_part(part: Identity | None, whole: Identity) -> bool:
    return part is not None and part.is_part_of(whole)


def _measures(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _METRIC_METHODS or (node.func.attr == "max" and node.args):
            return True
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(_METRICS.search(name))


def snake(name: str) -> str:
    """A name in snake case: `evaluateModel` becomes `evaluate_model`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def is_test_path(path: str) -> bool:
    """Whether a file is part of a test suite, by its place or its name."""
    pure = PurePath(path)
    # An absolute path says more about the machine than about the project: only the nearest folders count then.
    folders = pure.parts[-3:-1] if pure.is_absolute() else pure.parts[:-1]
    return any(part in {"tests", "test"} for part in folders) or pure.stem.startswith("test_") or pure.stem.endswith("_test")
