"""Rule `unwrap-variable`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.rule import Category, Rule, Safety

from .variables import import_without, is_constant, keyword, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_FLOAT_FACTORIES = frozenset(f"torch.{name}" for name in ("zeros", "ones", "rand", "randn", "empty", "eye", "linspace"))
"""Factories whose result is of floating point unless a dtype says otherwise."""
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_NOT_TENSORS = frozenset({Kind.NUMBER, Kind.ARRAY, Kind.SEQUENCE, Kind.TEXT, Kind.PACKED})


class UnwrapVariable(Rule):
    """`Variable(x)`, which is a plain tensor since torch 0.4.

    ## Why
    Tensors and variables are one; what is left of `Variable` is a detour that also cuts the result off the graph.

    ## Example
    ```python
    import torch
    from torch.autograd import Variable

    x = Variable(torch.ones(2), requires_grad=True)
    loss = (x * Variable(x)).sum()
    ```
    ```python
    import torch

    x = torch.ones(2, requires_grad=True)
    loss = (x * x.detach()).sum()
    ```

    ## Safety
    Safe: `Variable(x)` detaches, so that `x.detach()` is the same; where `x` has no history, `x` itself is. What isn't a
    tensor raises in `Variable` and is reported; `isinstance(x, Variable)` is true for every tensor, and left alone.

    ## References
    https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated
    """

    name = "unwrap-variable"
    category = Category.GRADIENTS
    safety = Safety.SAFE
    needles = (b"torch", b"Variable")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the calls of `Variable` on one tensor."""
        replaced: list[tuple[ast.Call, str]] = []
        for call in variables(file):
            fact = file.fact(call.args[0])
            volatile = keyword(call, "volatile")
            if not (volatile is None or is_constant(volatile, False)) or (fact is not None and fact.kind is Kind.PARAMETER):
                continue  # volatile is another rule's to drop first; who unwraps a parameter has a reason
            if fact is not None and fact.proven and fact.kind in _NOT_TENSORS:
                yield self.finding(file, call, "Variable takes a tensor only, and raises here: use torch.as_tensor")
                continue
            code = _plain(file, call)
            if code:
                replaced.append((call, code))
        calls = [call for call, _ in replaced]
        unused = import_without(file, calls) if len(calls) == len(variables(file)) else []
        for call, code in replaced:
            edits: list[Edit] = [ReplaceExpression(file.source.span(call), code), *(unused if call is calls[0] else [])]
            yield self.finding(file, call, f"a Variable is a plain tensor since torch 0.4: write `{code}`", *edits)


def _plain(file: FileModel, call: ast.Call) -> str:
    """The expression without `Variable`; empty where it can't be told."""
    tensor, needs = call.args[0], keyword(call, "requires_grad")
    code = file.source.code(tensor)
    receiver = code if isinstance(tensor, _ATOMS) else f"({code})"
    if needs is None or is_constant(needs, False):
        return code if _is_fresh(file, tensor) else f"{receiver}.detach()"
    if not is_constant(needs, True):
        return f"{receiver}.detach().requires_grad_({file.source.code(needs)})"
    if isinstance(tensor, ast.Call) and _takes_flag(file, tensor) and code.endswith(")") and "#" not in code:
        inner = code[:-1].rstrip().removesuffix(",")
        return f"{inner}{'' if inner.endswith('(') else ', '}requires_grad=True)"
    return f"{receiver}.detach().requires_grad_()"


def _takes_flag(file: FileModel, factory: ast.Call) -> bool:
    keywords = {k.arg for k in factory.keywords}
    return file.qualified(factory.func) in _FLOAT_FACTORIES and not keywords & {"dtype", "out", "requires_grad", None}


def _is_fresh(file: FileModel, tensor: ast.expr) -> bool:
    """Whether a tensor has no history and is no parameter, so that detaching it changes nothing."""
    return file.gradients.tracked(tensor) is False or _comes_from_loader(file, tensor)


def _comes_from_loader(file: FileModel, tensor: ast.expr) -> bool:
    """A batch of a DataLoader: it has left the datasets without a graph."""
    if not isinstance(tensor, ast.Name):
        return False
    for binding in file.flow.reaching(tensor):
        form, value, _ = file.flow.definition(binding)
        source = (
            value.args[0] if isinstance(value, ast.Call) and file.qualified(value.func) == "builtins.enumerate" and value.args else value
        )
        fact = file.fact(source) if form is Form.ITERATED and source is not None else None
        if fact is None or not fact.proven or fact.kind is not Kind.LOADER:
            return False
    return bool(file.flow.reaching(tensor))
