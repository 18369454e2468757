"""What stands for `Variable(x)` today: the tensor itself, or the tensor without its history."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.torch_api import FACTORIES, TENSOR_METHODS

from .variables import is_constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchfix_codemods.model import FileModel

    from .variables import Wrapping

_FLOAT_FACTORIES = frozenset(f"torch.{name}" for name in ("zeros", "ones", "rand", "randn", "empty", "eye", "linspace", "tensor"))
"""Factories with a `requires_grad`; for integers it raises, as Variable does."""
_NEW = FACTORIES - {"torch.as_tensor"}
"""Factories whose result nobody else holds."""
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_ASSIGNED = frozenset({"requires_grad", "data"})
_DONE = frozenset(
    "requires_grad_ retain_grad detach_ resize_ resize_as_ set_ t_ transpose_ squeeze_ unsqueeze_ swapaxes_ swapdims_".split()
)
"""What is done to one tensor object and not to its values: another object over the same memory keeps its own."""


def plain(file: FileModel, wrapping: Wrapping) -> str:
    """The expression without `Variable`."""
    tensor, needs = wrapping.tensor, wrapping.requires_grad
    code = file.source.code(tensor)
    receiver = code if isinstance(tensor, _ATOMS) else f"({code})"
    if needs is None or is_constant(needs, False):
        if not _has_no_history(file, tensor) or _changes_alone(file, wrapping):
            return f"{receiver}.detach()"
        return f"({code})" if "\n" in code and not isinstance(tensor, _ATOMS) else code
    if not is_constant(needs, True):
        flag = file.source.code(needs)
        return f"{receiver}.detach().requires_grad_({flag if _is_bool(file, needs) else f'bool({flag})'})"
    if isinstance(tensor, ast.Call) and _takes_flag(file, tensor) and "#" not in code:
        inner = code[:-1].rstrip().removesuffix(",")
        return f"{inner}{'' if inner.endswith('(') else ', '}requires_grad=True)"
    return f"{receiver}.requires_grad_()" if _is_new(file, tensor) else f"{receiver}.detach().requires_grad_()"


def drops(file: FileModel, codes: Mapping[ast.Call, str]) -> dict[ast.Call, ast.stmt]:
    """The calls in statements such as `x = x` that nothing is lost without; a block keeps at least one statement."""
    idle = {call: statement for call in codes if (statement := _idle(file, call, codes)) is not None}
    gone = set(idle.values())
    return {call: statement for call, statement in idle.items() if any(s not in gone for s in file.flow.place(statement)[0])}


def _idle(file: FileModel, call: ast.Call, codes: Mapping[ast.Call, str]) -> ast.stmt | None:
    """The statement around a call, if it would only assign names to themselves; in a class it makes an attribute."""
    statement = file.flow.statement(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1 or isinstance(file.parent(statement), ast.ClassDef):
        return None
    target, value = statement.targets[0], statement.value
    pair = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    targets, values = (target.elts, value.elts) if pair else ([target], [value])  # type: ignore[attr-defined]  # just tested
    written = [codes.get(v, "") if isinstance(v, ast.Call) else ast.unparse(v) for v in values]
    names = [t.id if isinstance(t, ast.Name) else None for t in targets]
    return statement if names == written else None


def _has_no_history(file: FileModel, tensor: ast.expr) -> bool:
    """Whether a tensor has no history and is no parameter, so that detaching it changes nothing."""
    if file.gradients.tracked(tensor) is not False:
        return False
    names = (node for node in ast.walk(tensor) if isinstance(node, ast.Name) and file.kinds.is_tensor(node))
    return not any(_was_given_away(file, name) for name in names)


def _was_given_away(file: FileModel, name: ast.Name) -> bool:
    """Whether a function that isn't known got the tensor before: it may have written something with a history into it."""
    bindings = set(file.flow.reaching(name))
    for use in file.kinds.reads(name.id):
        call = file.parent(use)
        if isinstance(call, ast.Call) and use in call.args and use.lineno < name.lineno and not _only_reads(file, call.func):
            if bindings & set(file.flow.reaching(use)):
                return True
    return False


def _only_reads(file: FileModel, func: ast.expr) -> bool:
    fact = file.fact(func)
    known = (file.qualified(func) or "").startswith(("torch.", "builtins.", "numpy.")) or (fact is not None and fact.kind is Kind.MODULE)
    return known or (isinstance(func, ast.Attribute) and func.attr in TENSOR_METHODS | {"append", "extend", "add", "update", "put"})


def _changes_alone(file: FileModel, wrapping: Wrapping) -> bool:
    """Whether the tensor or its Variable is marked or resized by itself: they are two objects over one memory."""
    if _is_new(file, wrapping.tensor):
        return False
    statement = file.flow.statement(wrapping.call)
    targets = statement.targets if isinstance(statement, ast.Assign) else [wrapping.call]
    names = {_last(node) for outer in (wrapping.tensor, *targets) for node in ast.walk(outer)} - {""}
    return any(_last(node.value) in names for node in _changed(file))


def _changed(file: FileModel) -> Iterator[ast.Attribute]:
    for node in file.index.all(ast.Attribute):
        assigned = node.attr in _ASSIGNED and isinstance(node.ctx, ast.Store)
        if assigned or node.attr in _DONE:
            yield node


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _takes_flag(file: FileModel, factory: ast.Call) -> bool:
    return file.qualified(factory.func) in _FLOAT_FACTORIES and not {k.arg for k in factory.keywords} & {"out", "requires_grad", None}


def _is_new(file: FileModel, tensor: ast.expr) -> bool:
    """Whether the tensor was made just here, without history: by a factory, and perhaps methods of a tensor."""
    if isinstance(tensor, ast.BinOp):
        return file.gradients.tracked(tensor) is False
    made = tensor
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in TENSOR_METHODS:
        if file.qualified(made.func) is not None:
            break
        made = made.func.value
    return isinstance(made, ast.Call) and file.qualified(made.func) in _NEW and file.gradients.tracked(tensor) is False


def _is_bool(file: FileModel, node: ast.expr) -> bool:
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        fact = file.fact(node)
        return fact is None or not fact.is_tensor or fact.kind is Kind.NUMBER
    return False
