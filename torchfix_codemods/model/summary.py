"""What other files need to know of the functions of a file: what happens in them, in order, and what they return."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .call_kinds import returned
from .gradients import Recording
from .identity import Identities, Identity
from .index import FUNCTIONS
from .outline import top_level
from .project import Symbol
from .training import DEPTH, Happening, Training, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .facts import Fact
    from .file import FileModel
    from .index import Function

_TELLING = (b"torch", b"backward", b"zero_grad", b".eval(", b".train(", b".step(")
"""A file without any of these has no function that matters to another."""


class Subject(NamedTuple):
    """An object as a function names it: a parameter of it, and attributes below that."""

    parameter: str
    attributes: tuple[str, ...] = ()

    def under(self, passed: Subject | None) -> Subject | None:
        """The same object, when `passed` is given for the parameter."""
        return Subject(passed.parameter, passed.attributes + self.attributes) if passed else None


class Step(NamedTuple):
    """Something that happens in a function; without a subject that its caller could name, `subject` is None."""

    happening: Happening
    subject: Subject | None
    records: bool
    """Whether gradients are recorded, as far as the function itself decides."""


class Onward(NamedTuple):
    """A call of a function of another file, with what it passes by position or name."""

    symbol: Symbol
    arguments: Mapping[int | str, Subject | None]
    records: bool


Trace: TypeAlias = tuple[Step | Onward, ...]


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A function, as seen from outside."""

    parameters: tuple[str, ...]
    """Those that take arguments by position, without a receiver."""
    trace: Trace
    result: Fact | None
    """What it returns, in terms of libraries and of classes of the project."""


def concerns_others(data: bytes) -> bool:
    """Whether a file may hold functions that matter to another."""
    return any(word in data for word in _TELLING)


def summaries(file: FileModel) -> dict[str, FunctionSummary]:
    """The functions and methods at the top level of a file, by name (`Class.method`)."""
    return {name: _Summarizer(file).summary(function) for name, function in _functions(file.tree)}


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in top_level(tree.body):
        if isinstance(node, FUNCTIONS):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{child.name}", child) for child in node.body if isinstance(child, FUNCTIONS))


class _Summarizer:
    def __init__(self, file: FileModel) -> None:
        self._file = file
        self._identities = Identities(file.kinds, through_calls=False)
        self._training = Training(file.kinds, self._identities)

    def summary(self, function: Function) -> FunctionSummary:
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        bound = self._file.classes.owner(function) is not None and "staticmethod" not in map(ast.unparse, function.decorator_list)
        return FunctionSummary(tuple(names[bound:]), tuple(self._steps(function, DEPTH)), self._result(function))

    def _steps(self, function: Function, depth: int) -> Iterator[Step | Onward]:
        for node in (node for statement in function.body for node in own_nodes(statement)):
            records = self._file.gradients.recording(node, depth=0) is not Recording.OFF
            for event in self._training.at(node):
                yield Step(event.happening, self._subject(event.identity, function), records)
            if isinstance(node, ast.Call) and depth:
                yield from self._through(node, function, records, depth)

    def _through(self, call: ast.Call, function: Function, records: bool, depth: int) -> Iterator[Step | Onward]:
        for target in self._file.functions.targets(call):
            names = [a.arg for a in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs)]
            passed = {name: self._expression(self._file.functions.argument(call, target, name), function) for name in names}
            yield from (substituted(step, passed, records) for step in self._steps(target, depth - 1))
        symbol = self._file.kinds.imported.function(call)
        if symbol:
            given: list[tuple[int | str, ast.expr]] = [*enumerate(call.args), *((k.arg, k.value) for k in call.keywords if k.arg)]
            yield Onward(symbol, {key: self._expression(value, function) for key, value in given}, records)

    def _expression(self, node: ast.expr | None, function: Function) -> Subject | None:
        return self._subject(self._identities.of(node), function)

    def _subject(self, identity: Identity | None, function: Function) -> Subject | None:
        if identity is None or identity.anchor[0] is not function:
            return None
        scope = self._file.index.scopes[function]
        is_parameter = any(isinstance(binding, ast.arg) for binding in scope.bindings.get(identity.anchor[1], ()))
        return Subject(identity.anchor[1], identity.attributes) if is_parameter else None

    def _result(self, function: Function) -> Fact | None:
        fact = returned(self._file.kinds, function)
        if fact is None or not fact.proven:
            return None
        if isinstance(fact.origin, ast.ClassDef):
            if fact.origin not in list(top_level(self._file.tree.body)):
                return None
            return replace(fact, origin=Symbol(self._file.view.path, fact.origin.name), call=None)
        return replace(fact, call=None)


def substituted(step: Step | Onward, passed: Mapping[str, Subject | None], records: bool) -> Step | Onward:
    """A step of a callee, in terms of its caller."""
    if isinstance(step, Step):
        subject = step.subject.under(passed.get(step.subject.parameter)) if step.subject else None
        return Step(step.happening, subject, step.records and records)
    arguments = {key: value.under(passed.get(value.parameter)) if value else None for key, value in step.arguments.items()}
    return Onward(step.symbol, arguments, step.records and records)
