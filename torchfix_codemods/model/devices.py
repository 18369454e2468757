"""Which values were moved to a device in the code at hand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .facts import Kind
from .flow import Form

if TYPE_CHECKING:
    from .identity import Identities, Identity
    from .kinds import Kinds


class Devices:
    """Moves to devices, in one file."""

    def __init__(self, kinds: Kinds, identities: Identities) -> None:
        self._kinds, self._identities = kinds, identities
        self._asked: set[ast.AST] = set()
        self._moved_modules: set[Identity] | None = None

    def moved(self, node: ast.expr | None) -> bool:
        """Whether a value, or something it is computed from, was moved to a device that may be a GPU."""
        if node is None or node in self._asked:
            return False
        self._asked.add(node)
        try:
            return self._moved(node)
        finally:
            self._asked.discard(node)

    def _moved(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return any(self._definition_moved(b) for b in self._kinds.flow.reaching(node))
        if isinstance(node, ast.Call):
            return self._call_moved(node)
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            return self.moved(node.value)
        if isinstance(node, ast.BinOp):
            return self.moved(node.left) or self.moved(node.right)
        if isinstance(node, ast.Compare):
            return self.moved(node.left) or any(self.moved(c) for c in node.comparators)
        return isinstance(node, ast.UnaryOp) and self.moved(node.operand)

    def _definition_moved(self, binding: ast.AST) -> bool:
        form, value, _ = self._kinds.flow.definition(binding)
        return form is Form.ASSIGNED and self.moved(value)

    def _call_moved(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute):
            if call.func.attr == "cpu" or (call.func.attr == "to" and _names_cpu(call)):
                return False
            if is_move(self._kinds, call):
                return True
        if any(k.arg == "device" and not _is_cpu(k.value) for k in call.keywords):
            return True
        receiver = self._kinds.fact(call.func)
        if receiver is not None and receiver.kind is Kind.MODULE:
            identity = self._identities.of(call.func)
            return identity in self._modules() or any(self.moved(a) for a in call.args)
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) and not self._kinds.names.qualified(call.func) else []
        return any(self.moved(a) for a in [*owner, *call.args])

    def _modules(self) -> set[Identity]:
        """Modules on which a move was called: it works in place, unlike a tensor's."""
        if self._moved_modules is None:
            self._moved_modules = set()
            for call in self._kinds.index.all(ast.Call):
                if isinstance(call.func, ast.Attribute) and is_move(self._kinds, call):
                    self._moved_modules |= {i for i in self._targets(call) if i}
        return self._moved_modules

    def _targets(self, call: ast.Call) -> list[Identity | None]:
        assert isinstance(call.func, ast.Attribute)
        statement = self._kinds.flow.statement(call)
        assigned = [self._identities.of(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
        return [self._identities.of(call.func.value), *assigned]


def is_move(kinds: Kinds, call: ast.Call) -> bool:
    """Whether a method call moves its receiver to a device other than a literal CPU."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "cuda":
        return True
    if call.func.attr != "to" or (not call.args and not any(k.arg == "device" for k in call.keywords)):
        return False
    target = call.args[0] if call.args else next(k.value for k in call.keywords if k.arg == "device")
    fact = kinds.fact(target)
    text = ast.unparse(target)
    named = text.rpartition(".")[2] in {"device", "dev", "gpu", "rank", "local_rank"}
    return not _is_cpu(target) and (named or (fact is not None and fact.kind in {Kind.DEVICE, Kind.TEXT}))


def _names_cpu(call: ast.Call) -> bool:
    return any(_is_cpu(a) for a in [*call.args, *(k.value for k in call.keywords)])


def _is_cpu(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return isinstance(node, ast.Constant) and node.value == "cpu"
