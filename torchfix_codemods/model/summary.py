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
from .project_names import Symbol
from .training import DEPTH, Happening, Training, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .facts import Fact
    from .file import FileModel
    from .index import Function


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
class Behaviour:
    """A function, as its callers see it."""

    parameters: tuple[str, ...]
    """Those that take arguments by position, without a receiver."""
    trace: Trace


def behaviours(file: FileModel) -> dict[str, Behaviour]:
    """What the functions and methods at the top level of a file do, by name (`Class.method`)."""
    tracer = _Tracer(file)
    return {name: tracer.behaviour(function) for name, function in _functions(file.tree)}


def results(file: FileModel) -> dict[str, Fact]:
    """What they return, in terms of libraries and of classes of the project, where it is proven."""
    facts = {name: _result(file, function) for name, function in _functions(file.tree)}
    return {name: fact for name, fact in facts.items() if fact is not None}


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in top_level(tree.body):
        if isinstance(node, FUNCTIONS):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{child.name}", child) for child in node.body if isinstance(child, FUNCTIONS))


def _result(file: FileModel, function: Function) -> Fact | None:
    fact = returned(file.kinds, function)
    if fact is None or not fact.proven:
        return None
    if not isinstance(fact.origin, ast.ClassDef):
        return replace(fact, call=None)
    at_top = fact.origin in list(top_level(file.tree.body))
    return replace(fact, origin=Symbol(file.view.path, fact.origin.name), call=None) if at_top else None


class _Tracer:
    def __init__(self, file: FileModel) -> None:
        self._file = file
        self._identities = Identities(file.kinds, through_calls=False)
        self._training = Training(file.kinds, self._identities)
        self._known: dict[tuple[Function, int], Trace] = {}

    def behaviour(self, function: Function) -> Behaviour:
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        bound = self._file.classes.owner(function) is not None and "staticmethod" not in map(ast.unparse, function.decorator_list)
        return Behaviour(tuple(names[bound:]), self._steps(function, DEPTH))

    def _steps(self, function: Function, depth: int) -> Trace:
        key = (function, depth)
        if key not in self._known:
            nodes = (node for statement in function.body for node in own_nodes(statement))
            self._known[key] = tuple(step for node in nodes for step in self._at(node, function, depth))
        return self._known[key]

    def _at(self, node: ast.AST, function: Function, depth: int) -> Iterator[Step | Onward]:
        for event in self._training.at(node):
            yield Step(event.happening, self._subject(event.identity, function), self._records(node))
        if isinstance(node, ast.Call) and depth:
            yield from self._through(node, function, depth)

    def _records(self, node: ast.AST) -> bool:
        return self._file.gradients.recording(node, depth=0) is not Recording.OFF

    def _through(self, call: ast.Call, function: Function, depth: int) -> Iterator[Step | Onward]:
        for target in self._file.functions.targets(call):
            inner = self._steps(target, depth - 1)
            if not inner:
                continue
            names = [a.arg for a in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs)]
            passed = {name: self._expression(self._file.functions.argument(call, target, name), function) for name in names}
            yield from (substituted(step, passed, self._records(call)) for step in inner)
        symbol = self._file.kinds.imported.function(call)
        if symbol:
            given: list[tuple[int | str, ast.expr]] = [*enumerate(call.args), *((k.arg, k.value) for k in call.keywords if k.arg)]
            yield Onward(symbol, {key: self._expression(value, function) for key, value in given}, self._records(call))

    def _expression(self, node: ast.expr | None, function: Function) -> Subject | None:
        return self._subject(self._identities.of(node), function)

    def _subject(self, identity: Identity | None, function: Function) -> Subject | None:
        if identity is None or identity.anchor[0] is not function:
            return None
        scope = self._file.index.scopes[function]
        is_parameter = any(isinstance(binding, ast.arg) for binding in scope.bindings.get(identity.anchor[1], ()))
        return Subject(identity.anchor[1], identity.attributes) if is_parameter else None


def substituted(step: Step | Onward, passed: Mapping[str, Subject | None], records: bool) -> Step | Onward:
    """A step of a callee, in terms of its caller."""
    if isinstance(step, Step):
        subject = step.subject.under(passed.get(step.subject.parameter)) if step.subject else None
        return Step(step.happening, subject, step.records and records)
    arguments = {key: value.under(passed.get(value.parameter)) if value else None for key, value in step.arguments.items()}
    return Onward(step.symbol, arguments, step.records and records)
