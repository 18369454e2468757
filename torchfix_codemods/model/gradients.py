"""Where gradients are recorded, and which values carry them."""

from __future__ import annotations

import ast
from enum import Enum, auto
from typing import TYPE_CHECKING

from . import torch_api as api
from .facts import TENSORS, Kind
from .flow import Form
from .index import FUNCTIONS
from .written import written_into

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Origin
    from .kinds import Kinds

_CALLER_DEPTH = 4
_MAY_BE_TRACKED = TENSORS | {Kind.PAIR, Kind.UNDECIDED}
_WITHOUT_PARAMETERS = frozenset(
    f"torch.nn.{name}"
    for name in """
    ReLU ReLU6 LeakyReLU ELU SELU CELU GELU Sigmoid Tanh Softmax LogSoftmax Softmax2d Softplus Softsign Hardtanh SiLU
    Dropout Dropout2d Dropout3d Flatten Unflatten MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d Identity
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d Upsample PixelShuffle
    """.split()
)


class Recording(Enum):
    """Whether autograd records at a place."""

    ON = auto()
    OFF = auto()
    UNKNOWN = auto()


class Gradients:
    """Grad mode and gradient history in one file."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._asked: set[ast.AST] = set()

    def recording(self, node: ast.AST, depth: int = _CALLER_DEPTH, *, outside: bool = False) -> Recording:
        """Whether autograd records where `node` runs: by the withs around it, decorators, and all callers in the file.

        With `outside`, callers in other files count too; finding these takes longer.
        """
        for ancestor in self._kinds.flow.ancestors(node):
            if isinstance(ancestor, (ast.With, ast.AsyncWith)):
                for item in ancestor.items:
                    mode = self._mode(item.context_expr)
                    if mode and not _holds(item, node):
                        return mode
            elif isinstance(ancestor, (*FUNCTIONS, ast.Lambda)):
                return self._of_function(ancestor, depth, outside)
        return self._of_module()

    def _of_function(self, function: ast.AST, depth: int, outside: bool) -> Recording:
        if isinstance(function, ast.Lambda):
            return Recording.UNKNOWN
        assert isinstance(function, FUNCTIONS)
        for decorator in function.decorator_list:
            mode = self._mode(decorator)
            if mode:
                return mode
        if self._of_module() is Recording.OFF:
            return Recording.OFF
        calls = self._kinds.functions.calls_to(function) if depth else []
        modes = {self.recording(call, depth - 1, outside=outside) for call in calls}
        if outside:
            modes |= {model.gradients.recording(call) for model, call in self._kinds.imported.callers(function)}
        return modes.pop() if len(modes) == 1 else Recording.ON

    def _of_module(self) -> Recording:
        for statement in _run_at_import(self._kinds.index.module.body):
            if isinstance(statement, ast.Expr) and self._mode(statement.value, effective=True) is Recording.OFF:
                return Recording.OFF
        return Recording.ON

    def _mode(self, node: ast.expr, *, effective: bool = False) -> Recording | None:
        """What a context manager (or, with `effective`, a call as a statement) does to grad mode."""
        name = self._kinds.names.qualified(node.func if isinstance(node, ast.Call) else node) or ""
        if name in api.SET_GRAD_ENABLED and isinstance(node, ast.Call):
            value = node.args[0] if node.args else node.keywords[0].value if node.keywords else None
            if isinstance(value, ast.Constant):
                return Recording.ON if value.value else Recording.OFF
            return Recording.UNKNOWN
        if effective:
            return None
        if name in api.NO_GRAD_CONTEXTS:
            return Recording.OFF
        if name in api.ENABLE_GRAD:
            return Recording.ON
        # A wrapper of the project around no_grad: what it does isn't shown.
        words = ast.unparse(node).lower()
        return Recording.UNKNOWN if "no_grad" in words or "inference_mode" in words or "grad_enabled" in words else None

    def tracked(self, node: ast.expr | None) -> bool | None:
        """Whether a tensor has gradient history (or is a parameter): True and False are proven, None is unknown."""
        if node is None or node in self._asked:
            return None
        self._asked.add(node)
        try:
            return self._tracked(node)
        finally:
            self._asked.discard(node)

    def _tracked(self, node: ast.expr) -> bool | None:
        fact = self._kinds.fact(node)
        if fact and fact.kind is Kind.PARAMETER:
            return True
        if fact is not None and fact.kind is Kind.SEQUENCE:
            return self._sequence(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if fact and fact.kind not in _MAY_BE_TRACKED:
            return False
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return _any([self.tracked(node.left), self.tracked(node.right)])
        if isinstance(node, ast.Compare):
            return False
        if isinstance(node, ast.UnaryOp):
            return self.tracked(node.operand)
        if isinstance(node, ast.Attribute):
            return False if node.attr in {"data", "grad"} else self.tracked(node.value)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        return None

    def _sequence(self, node: ast.expr) -> bool | None:
        """Whether a list or tuple holds tensors with history: by its literal elements and what is appended to it."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return _any([self.tracked(element) for element in node.elts])
        if isinstance(node, ast.Call):
            plain = isinstance(node.func, ast.Attribute) and node.func.attr in {"tolist", "size"}
            return False if plain else None
        if not isinstance(node, ast.Name):
            return None
        values = [self._kinds.flow.definition(b).value for b in self._kinds.names.bindings(node)]
        parents = self._kinds.index.parents
        for use in self._kinds.reads(node.id):
            method = parents[use]
            if isinstance(method, ast.Attribute) and self._kinds.names.scope_of(use) is self._kinds.names.scope_of(node):
                call = parents[method]
                values += call.args if isinstance(call, ast.Call) and method.attr in {"append", "extend", "insert"} else []
        return _any([self.tracked(value) if value is not None else None for value in values])

    def _is_pair(self, node: ast.expr) -> bool:
        fact = self._kinds.fact(node)
        return fact is not None and fact.kind is Kind.PAIR

    def _subscript(self, node: ast.Subscript) -> bool | None:
        if self._is_pair(node.value) and isinstance(node.slice, ast.Constant) and node.slice.value == 1:
            return False
        return self.tracked(node.value)

    def _name(self, name: ast.Name) -> bool | None:
        answers = [self._definition(binding) for binding in self._kinds.flow.reaching(name)]
        answer = answers[0] if answers and all(answer is answers[0] for answer in answers) else None
        return None if answer is False and self._gains_history(name) else answer

    def _gains_history(self, name: ast.Name) -> bool:
        """Whether what has history, or may have it, is written into a tensor in place."""
        bindings = set(self._kinds.flow.reaching(name))
        for use in self._kinds.reads(name.id):
            written = written_into(self._kinds.index.parents, use)
            if written and bindings & set(self._kinds.flow.reaching(use)):
                if any(value not in self._asked and self.tracked(value) is not False for value in written):
                    return True
        return False

    def _definition(self, binding: ast.AST) -> bool | None:
        form, value, path = self._kinds.flow.definition(binding)
        if form is Form.ITERATED and value is not None and self._is_loader(value):
            return False
        if form is not Form.ASSIGNED or value is None:
            return None
        if self.recording(binding) is Recording.OFF and not self._makes_leaf(value):
            return False
        if path and self._is_pair(value):
            return False if path[0] == 1 else self.tracked(value)
        return self.tracked(value)

    def _is_loader(self, value: ast.expr) -> bool:
        """A DataLoader, perhaps enumerated: what it gives has left the datasets without a graph."""
        enumerated = isinstance(value, ast.Call) and self._kinds.names.qualified(value.func) == "builtins.enumerate" and value.args
        fact = self._kinds.fact(value.args[0] if enumerated else value)  # type: ignore[attr-defined]  # just tested
        return fact is not None and fact.proven and fact.kind is Kind.LOADER

    def _makes_leaf(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Call) and any(keyword.arg == "requires_grad" for keyword in value.keywords)

    def _call(self, call: ast.Call) -> bool | None:
        if self.recording(call) is Recording.OFF and not self._makes_leaf(call):
            return False
        name = self._kinds.names.qualified(call.func)
        if name:
            return self._library(call, name)
        if self._is_tensor_type(call.func):
            return False
        receiver = self._kinds.fact(call.func)
        if receiver and receiver.kind is Kind.MODULE:
            return self._module_call(call, receiver.origin, receiver.proven)
        if isinstance(call.func, ast.Attribute):
            return self._method(call, call.func)
        return None

    def _is_tensor_type(self, func: ast.expr) -> bool:
        """`torch.cuda.FloatTensor`, or a name for it: `Tensor = torch.cuda.FloatTensor if gpu else torch.FloatTensor`."""
        if isinstance(func, ast.IfExp):
            return self._is_tensor_type(func.body) and self._is_tensor_type(func.orelse)
        name = self._kinds.names.qualified(func)
        if name is not None or not isinstance(func, ast.Name):
            return (name or "").startswith("torch.") and (name or "").endswith("Tensor")
        values = [self._kinds.flow.definition(binding).value for binding in self._kinds.flow.reaching(func)]
        return bool(values) and all(isinstance(v, (ast.IfExp, ast.Attribute)) and self._is_tensor_type(v) for v in values)

    def _library(self, call: ast.Call, name: str) -> bool | None:
        if name in api.FACTORIES or (name.startswith("torch.cuda.") and name.endswith("Tensor")):
            flags = [keyword.value for keyword in call.keywords if keyword.arg == "requires_grad"]
            if not flags:
                return False
            return flags[0].value if isinstance(flags[0], ast.Constant) and isinstance(flags[0].value, bool) else None
        if name == "torch.autograd.Variable":
            return False if not call.keywords else None
        if name.rpartition(".")[2] in api.DROPS_GRADIENT:
            return False
        return _any([self.tracked(argument) for argument in call.args])

    def _module_call(self, call: ast.Call, origin: Origin, proven: bool) -> bool | None:
        arguments = _any([self.tracked(argument) for argument in call.args])
        if isinstance(origin, str) and (origin in api.LOSS_LAYERS or origin in _WITHOUT_PARAMETERS):
            return arguments
        # A module may be frozen or empty; without a sign of that its parameters record.
        return True if proven and not self._freezes else arguments or None

    @property
    def _freezes(self) -> bool:
        return any(node.attr in {"requires_grad", "requires_grad_"} for node in self._kinds.index.all(ast.Attribute))

    def _method(self, call: ast.Call, func: ast.Attribute) -> bool | None:
        if func.attr in api.DROPS_GRADIENT:
            return False
        if func.attr == "requires_grad_":
            return not call.args or None
        return _any([self.tracked(func.value), *(self.tracked(a) for a in call.args if self._kinds.is_tensor(a))])


def _run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements at top level that run whatever happens, those of a `try` included."""
    for statement in body:
        if isinstance(statement, (ast.Try, ast.With)):
            yield from _run_at_import(statement.body)
        else:
            yield statement


def _holds(item: ast.withitem, node: ast.AST) -> bool:
    """Whether `node` is part of the with item itself, which is evaluated before the context is entered."""
    return any(child is node for child in ast.walk(item))


def _any(answers: list[bool | None]) -> bool | None:
    """History of a result from that of its operands: one is enough; all must be free of it."""
    if any(answer is True for answer in answers):
        return True
    return False if all(answer is False for answer in answers) else None
