"""What happens in a training or evaluation loop: forwards, backwards, steps, cleared gradients, switched modes."""

from __future__ import annotations

import ast
import re
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from . import torch_api as api
from .facts import Kind
from .identity import Identity
from .index import FUNCTIONS, children_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .identity import Identities
    from .index import Function
    from .kinds import Kinds
    from .project_names import Symbol

DEPTH = 3
"""How many calls inside the file a question follows."""

_DEFINITIONS = frozenset({*FUNCTIONS, ast.ClassDef})
_OPTIMIZER_NAME = re.compile(r"opt|solver", re.IGNORECASE)
_NOT_OPTIMIZER = re.compile(r"sched|warmup|lr_|env|engine|accelerator|profiler|prof$", re.IGNORECASE)
_ENGINES = re.compile(r"(^|\.)(accelerator|fabric|engine|model_engine|booster)$")


class Happening(Enum):
    """The events that rules about loops look for."""

    FORWARD = auto()
    BACKWARD = auto()
    STEP = auto()
    CLEAR = auto()
    EVAL = auto()
    TRAIN = auto()
    RESTORE = auto()
    """`train(flag)`, or `train()` and `eval()` in two branches: the mode becomes what a variable says."""


class Event(NamedTuple):
    """One event; inside a callee `node` is the call that leads to it, and the subject is named as the caller does."""

    happening: Happening
    node: ast.Call | ast.stmt
    """Where it happens, in the code that was asked about."""
    subject: ast.expr | None
    """Model, loss or optimizer, as written where it happens."""
    identity: Identity | None
    origin: ast.Call | ast.stmt
    """Where it happens, in whatever function of this file."""
    elsewhere: Symbol | None = None
    """The function of another file in which it happens; node and origin are then the call that leads there."""
    guarded: bool = False
    """Whether that function turns gradients off around it."""

    @property
    def is_here(self) -> bool:
        """Whether it happens at `node` itself, and not in a function that is called there."""
        return self.node is self.origin and self.elsewhere is None


class Training:
    """Events of one file, by place."""

    def __init__(self, kinds: Kinds, identities: Identities) -> None:
        self._kinds, self._identities = kinds, identities
        self._own: dict[ast.AST, tuple[Event, ...]] = {}

    def events(self, nodes: Iterable[ast.AST], depth: int = DEPTH) -> Iterator[Event]:
        """The events of some code in the order of evaluation, following calls inside the file `depth` levels down."""
        for node in nodes:
            for child in own_nodes(node):
                yield from self.at(child)
                if depth and isinstance(child, ast.Call):
                    yield from self._through(child, depth)

    def _through(self, call: ast.Call, depth: int) -> Iterator[Event]:
        for function in self._called(call):
            for event in self.events(function.body, depth - 1):
                identity = event.identity and self._identities.seen_by_caller(event.identity, function, call)
                yield event._replace(node=call, identity=identity)
        yield from self._elsewhere(call)

    def _elsewhere(self, call: ast.Call) -> Iterator[Event]:
        """The events of a function of another file."""
        symbol = self._kinds.imported.function(call)
        if symbol is None:
            return
        for step in self._kinds.imported.trace(symbol):
            passed = self._kinds.imported.argument(call, step.subject.parameter) if step.subject else None
            identity = self._identities.of(passed)
            if identity is not None and step.subject is not None:
                identity = Identity(identity.anchor, identity.attributes + step.subject.attributes)
            subject = passed if step.subject is not None and not step.subject.attributes else None
            yield Event(step.happening, call, subject, identity, call, symbol, not step.records)

    def _called(self, call: ast.Call) -> Iterator[Function]:
        """Functions that a call runs: its own target, and a closure given to an optimizer's step."""
        yield from self._kinds.functions.targets(call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
            for argument in call.args:
                bindings = self._kinds.names.bindings(argument) if isinstance(argument, ast.Name) else []
                yield from (b for b in bindings if isinstance(b, FUNCTIONS))

    def at(self, node: ast.AST) -> tuple[Event, ...]:
        """The events that one node is by itself."""
        if node not in self._own:
            self._own[node] = tuple(self._classify(node))
        return self._own[node]

    def _classify(self, node: ast.AST) -> Iterator[Event]:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                classify = _METHODS.get(node.func.attr)
                found = classify(self, node, node.func) if classify else None
                if found:
                    yield self._event(found[0], node, found[1])
                    return
            if self.is_forward(node):
                yield self._event(Happening.FORWARD, node, _model_of(node))
        elif isinstance(node, (ast.Assign, ast.Delete)) and _clears_gradient(node):
            yield self._event(Happening.CLEAR, node, None)

    def _event(self, happening: Happening, node: ast.Call | ast.stmt, subject: ast.expr | None) -> Event:
        return Event(happening, node, subject, self._identities.of(subject), node)

    def is_forward(self, call: ast.Call) -> bool:
        """Whether a call runs a module that is no criterion; likely modules count."""
        model = _model_of(call)
        fact = self._kinds.fact(model) if model is not None else None
        return fact is not None and fact.kind is Kind.MODULE and fact.origin not in api.LOSS_LAYERS

    def _backward(self, call: ast.Call, func: ast.Attribute) -> tuple[Happening, ast.expr | None] | None:
        name = self._kinds.names.qualified(func)
        owner = func.value
        if name == "torch.autograd.backward" or self.is_engine(owner) or (name and not name.startswith("torch.")):
            return Happening.BACKWARD, call.args[0] if call.args else None
        if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and owner.func.attr == "scale" and owner.args:
            return Happening.BACKWARD, owner.args[0]
        return Happening.BACKWARD, owner

    def is_engine(self, owner: ast.expr) -> bool:
        """Whether `owner.backward(loss)` is the call of a library object that runs backward for its argument."""
        return bool(_ENGINES.search(ast.unparse(owner)))

    def _manual_backward(self, call: ast.Call, _: ast.Attribute) -> tuple[Happening, ast.expr | None] | None:
        return Happening.BACKWARD, call.args[0] if call.args else None

    def _step(self, call: ast.Call, func: ast.Attribute) -> tuple[Happening, ast.expr | None] | None:
        if self.is_optimizer(func.value):
            return Happening.STEP, func.value
        return (Happening.STEP, call.args[0]) if len(call.args) == 1 and self.is_optimizer(call.args[0]) else None

    def is_optimizer(self, node: ast.expr) -> bool:
        """Whether a value is an optimizer, by proof or by its name."""
        fact = self._kinds.fact(node)
        if fact is not None and fact.proven:
            return fact.kind is Kind.OPTIMIZER
        last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        return bool(_OPTIMIZER_NAME.search(last)) and not _NOT_OPTIMIZER.search(last)

    def _zero_grad(self, _: ast.Call, func: ast.Attribute) -> tuple[Happening, ast.expr | None] | None:
        return Happening.CLEAR, func.value

    def _zero(self, _: ast.Call, func: ast.Attribute) -> tuple[Happening, ast.expr | None] | None:
        chain = ast.unparse(func.value)
        return (Happening.CLEAR, None) if chain.endswith((".grad", ".grad.data")) else None

    def _eval(self, call: ast.Call, func: ast.Attribute) -> tuple[Happening, ast.expr | None] | None:
        if call.args or call.keywords or not self._may_be_module(func.value):
            return None
        return Happening.RESTORE if self._is_either(call, func, "train") else Happening.EVAL, func.value

    def _train(self, call: ast.Call, func: ast.Attribute) -> tuple[Happening, ast.expr | None] | None:
        if not self._may_be_module(func.value) or len(call.args) + len(call.keywords) > 1 or self._kinds.functions.targets(call):
            return None
        fact = self._kinds.fact(func.value)
        if fact is not None and self._kinds.classes.has_method(fact.origin, "train"):
            return Happening.RESTORE, func.value
        mode = call.args[0] if call.args else call.keywords[0].value if call.keywords else None
        if mode is None:
            return Happening.RESTORE if self._is_either(call, func, "eval") else Happening.TRAIN, func.value
        if isinstance(mode, ast.Constant):
            return (Happening.TRAIN if mode.value else Happening.EVAL), func.value
        return Happening.RESTORE, func.value

    def _is_either(self, call: ast.Call, func: ast.Attribute, opposite: str) -> bool:
        """Whether the call is one branch of `if flag: model.train() else: model.eval()`."""
        wanted = f"{ast.unparse(func.value)}.{opposite}("
        child: ast.AST = call
        for ancestor in self._kinds.flow.ancestors(call):
            if isinstance(ancestor, FUNCTIONS):
                return False
            if isinstance(ancestor, ast.If):
                other = ancestor.orelse if child in ancestor.body else ancestor.body
                if any(wanted in ast.unparse(statement) for statement in other):
                    return True
            child = ancestor
        return False

    def _may_be_module(self, node: ast.expr) -> bool:
        fact = self._kinds.fact(node)
        return fact is None or fact.kind in {Kind.MODULE, Kind.UNDECIDED}


def _model_of(call: ast.Call) -> ast.expr | None:
    """`model` in `model(x)`, `model.forward(x)` and `model.generate(x)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"forward", "generate", "inference", "encode", "decode", "sample"}:
        return call.func.value
    return call.func


def own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of some code in the order of evaluation, without the bodies of functions, lambdas and classes in it."""
    if isinstance(root, (*FUNCTIONS, ast.ClassDef)):
        return
    stack: list[tuple[ast.AST, bool]] = [(root, False)]
    while stack:
        node, children_done = stack.pop()
        if children_done or isinstance(node, ast.Lambda):
            yield node
            continue
        stack.append((node, True))
        stack += [(child, False) for child in reversed(children_of(node)) if child.__class__ not in _DEFINITIONS]


def _clears_gradient(node: ast.Assign | ast.Delete) -> bool:
    if isinstance(node, ast.Assign) and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        return False
    return any(isinstance(target, ast.Attribute) and target.attr == "grad" for target in node.targets)


_METHODS: dict[str, Callable[[Training, ast.Call, ast.Attribute], tuple[Happening, ast.expr | None] | None]] = {
    "backward": Training._backward,
    "manual_backward": Training._manual_backward,
    "step": Training._step,
    "zero_grad": Training._zero_grad,
    "zero_": Training._zero,
    "eval": Training._eval,
    "train": Training._train,
}
