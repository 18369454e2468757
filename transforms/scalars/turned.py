"""Tensors whose memory is in another order than their dimensions, and the views that they don't have."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, TypeAlias

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_KEEPS_ORDER = frozenset(
    """
    eq ne gt ge lt le float double long int half bool byte to type cpu cuda detach clone abs neg exp log relu sigmoid
    tanh mul div add sub mul_ div_ add_ sub_ clamp
    """.split()
)
_KEEPS_ORDER_FUNCTIONS = frozenset(
    f"torch.{name}" for name in "eq ne gt ge lt le abs neg exp log relu sigmoid tanh mul div add sub clamp".split()
)
_FACTORIES = frozenset(f"torch.{name}" for name in "zeros ones rand randn empty".split())
_LAST_TWO: list[ast.expr] = [ast.Constant(-1), ast.Constant(-2)]
_DEPTH = 8

Order: TypeAlias = tuple[int, ...]
"""For each dimension of a tensor the place that it had in memory."""


def has_no_view(file: FileModel, view: ast.Call) -> bool:
    """Whether `view` is asked to merge dimensions that don't lie side by side in memory.

    A turned tensor that is split further, or whose neighbours stay together, does have a view.
    """
    sizes = view.args[0].elts if len(view.args) == 1 and isinstance(view.args[0], (ast.Tuple, ast.List)) else view.args
    if view.keywords or not sizes or any(isinstance(size, ast.Starred) for size in sizes) or not _are_numbers(file, sizes):
        return False
    assert isinstance(view.func, ast.Attribute)
    # Whoever leaves a size open merges dimensions: there are more of them than sizes.
    order = _order(file, view.func.value, _DEPTH, len(sizes) + 1 if any(_is_rest(size) for size in sizes) else 2)
    return order is not None and len(sizes) < _runs(order)


def _are_numbers(file: FileModel, sizes: list[ast.expr]) -> bool:
    """Whether they are sizes: one argument alone may be a dtype, which `reshape` doesn't take."""
    if len(sizes) > 1:
        return True
    one = sizes[0]
    number = isinstance(one, ast.UnaryOp) or (isinstance(one, ast.Constant) and isinstance(one.value, int))
    fact = file.fact(one)
    return number or (fact is not None and fact.proven and fact.kind is Kind.NUMBER)


def _is_rest(size: ast.expr) -> bool:
    return isinstance(size, ast.UnaryOp) and ast.unparse(size) == "-1"


def _runs(order: Order) -> int:
    """The number of stretches of dimensions that lie side by side: no view has fewer dimensions."""
    return 1 + sum(after != before + 1 for before, after in itertools.pairwise(order))


def _order(file: FileModel, node: ast.expr, depth: int, at_least: int) -> Order | None:
    """The order of a tensor that is sure to be turned; `at_least` dimensions are assumed where nothing shows their number."""
    if not depth:
        return None
    if isinstance(node, ast.Subscript):
        return _order(file, node.value, depth - 1, at_least) if isinstance(node.slice, ast.Slice) else None
    if isinstance(node, ast.Attribute):
        turns = node.attr in {"T", "mT"} and not file.qualified(node) and _may_be_tensor(file, node.value)
        return _turned(file, "transpose", node.value, _LAST_TWO, depth, at_least if node.attr == "mT" else 2) if turns else None
    if isinstance(node, (ast.Compare, ast.BinOp)):
        return _order(file, node.left, depth - 1, at_least)
    if isinstance(node, ast.Call):
        return _order_of_call(file, node, depth, at_least)
    if isinstance(node, ast.Name):
        orders = [_order_of_binding(file, binding, depth, at_least) for binding in file.flow.reaching(node)]
        return orders[0] if orders and all(order == orders[0] for order in orders) else None
    return None


def _order_of_binding(file: FileModel, binding: ast.AST, depth: int, at_least: int) -> Order | None:
    form, value, path = file.flow.definition(binding)
    return _order(file, value, depth - 1, at_least) if form is Form.ASSIGNED and value is not None and not path else None


def _order_of_call(file: FileModel, call: ast.Call, depth: int, at_least: int) -> Order | None:
    name = file.qualified(call.func)
    if name:
        turns = name in {"torch.t", "torch.transpose", "torch.permute"} and call.args
        if turns:
            return _turned(file, name.rpartition(".")[2], call.args[0], call.args[1:], depth, at_least)
        return _order(file, call.args[0], depth - 1, at_least) if name in _KEEPS_ORDER_FUNCTIONS and call.args else None
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr in _KEEPS_ORDER:
        return _order(file, call.func.value, depth - 1, at_least)
    return _turned(file, call.func.attr, call.func.value, call.args, depth, at_least) if _may_be_tensor(file, call.func.value) else None


def _turned(file: FileModel, method: str, tensor: ast.expr, given: list[ast.expr], depth: int, at_least: int) -> Order | None:
    """The order after `t()`, `transpose(i, j)` or `permute(…)`, by literal dimensions."""
    order = _swapped(file, method, tensor, given, at_least)
    before = _order(file, tensor, depth - 1, at_least) if order is not None else None
    return tuple(before[place] for place in order) if order is not None and before is not None and len(before) == len(order) else order


def _swapped(file: FileModel, method: str, tensor: ast.expr, given: list[ast.expr], at_least: int) -> Order | None:
    if method == "t" and not given:
        return (1, 0)
    elements = given[0].elts if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)) else given
    places = [_integer(element) for element in elements]
    if None in places or not places:
        return None
    known = [place for place in places if place is not None]
    if method == "permute":
        return tuple(place % len(known) for place in known)
    if method not in {"transpose", "swapaxes"} or len(known) != 2:
        return None
    number = _dimensions(file, tensor) or max(at_least, *(place + 1 if place >= 0 else -place for place in known))
    order = list(range(number))
    first, second = (place % number for place in known)
    order[first], order[second] = order[second], order[first]
    return tuple(order)


def _integer(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def _dimensions(file: FileModel, node: ast.expr) -> int | None:
    """How many dimensions a tensor has, where it is made by a factory or a view with as many sizes."""
    if isinstance(node, ast.Name):
        forms = [file.flow.definition(binding) for binding in file.flow.reaching(node)]
        value = forms[0].value if len(forms) == 1 and forms[0].form is Form.ASSIGNED and not forms[0].path else None
        return _dimensions(file, value) if isinstance(value, ast.Call) else None
    if not isinstance(node, ast.Call):
        return None
    shaped = isinstance(node.func, ast.Attribute) and node.func.attr in {"view", "reshape"} and not file.qualified(node.func)
    if not shaped and file.qualified(node.func) not in _FACTORIES:
        return None
    sizes = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
    return len(sizes) if sizes and all(_integer(size) is not None for size in sizes) else None


def _may_be_tensor(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node)
    return fact is None or fact.is_tensor
