"""Rule `unwrap-variable`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import DeleteStatement, ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import catches
from torchfix_codemods.rule import Category, Rule, Safety

from .unwrapping import drops, plain
from .variables import NAMES, import_without, is_constant, wrappings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .variables import Wrapping

_NOT_TENSORS = frozenset({Kind.NUMBER, Kind.ARRAY, Kind.SEQUENCE, Kind.TEXT, Kind.PACKED})
_TESTS = frozenset({"builtins.isinstance", "builtins.issubclass"})


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
    Safe: `Variable(x)` detaches, so that `x.detach()` is the same; where `x` has no history, and nothing marks it or
    changes its shape later, `x` itself is. What isn't a tensor raises in `Variable` and is reported, as are tests and
    annotations with the class, which every tensor passes. A `Variable` of a parameter is kept.

    ## References
    https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated
    """

    name = "unwrap-variable"
    category = Category.GRADIENTS
    safety = Safety.SAFE
    needles = (b"torch", b"Variable")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the calls that wrap a tensor, and the tests whether something is wrapped."""
        yield from self._mentions(file)
        found = wrappings(file)
        replaced: list[tuple[Wrapping, str]] = []
        for wrapping in found:
            fact = file.fact(wrapping.tensor)
            unclear = wrapping.volatile is not None and not is_constant(wrapping.volatile, False)
            if unclear or (fact is not None and fact.kind is Kind.PARAMETER):
                continue  # volatile is another rule's to drop first; who unwraps a parameter has a reason
            if fact is not None and fact.proven and fact.kind in _NOT_TENSORS:
                yield self.finding(file, wrapping.call, "Variable takes a tensor only, and raises here: use torch.as_tensor")
            elif _is_attempt(file, wrapping.call):
                yield self.finding(file, wrapping.call, "test for a tensor with isinstance(…, torch.Tensor) rather than with Variable")
            else:
                replaced.append((wrapping, plain(file, wrapping)))
        yield from self._replacements(file, replaced, len(replaced) == len(found))

    def _replacements(self, file: FileModel, replaced: list[tuple[Wrapping, str]], all_of_them: bool) -> Iterator[Finding]:
        calls = [wrapping.call for wrapping, _ in replaced]
        unused = import_without(file, calls) if all_of_them else []
        dropped = drops(file, {wrapping.call: code for wrapping, code in replaced})
        for wrapping, code in replaced:
            statement = dropped.get(wrapping.call)
            change: Edit = ReplaceExpression(file.source.span(wrapping.call), code)
            advice = f"write `{' '.join(code.split())}`"
            if statement is not None:
                change, advice = DeleteStatement(file.source.span(statement)), "leave this out"
            edits = [change, *(unused if wrapping.call is calls[0] else [])]
            yield self.finding(file, wrapping.call, f"a Variable is a plain tensor since torch 0.4: {advice}", *edits)

    def _mentions(self, file: FileModel) -> Iterator[Finding]:
        """Tests and annotations with the class: true of every tensor."""
        for call in file.index.all(ast.Call):
            if file.qualified(call.func) in _TESTS and len(call.args) == 2 and _names_variable(file, call.args[1]):  # isinstance takes two
                yield self.finding(
                    file, call, "every tensor is a Variable since torch 0.4: test for torch.Tensor, or for what is really meant"
                )
        parameters = [argument.annotation for argument in file.index.all(ast.arg)]
        for annotation in [*parameters, *(statement.annotation for statement in file.index.all(ast.AnnAssign))]:
            if annotation is not None and _names_variable(file, annotation):
                yield self.finding(file, annotation, "a Variable is a plain tensor since torch 0.4: annotate with torch.Tensor")


def _names_variable(file: FileModel, node: ast.expr) -> bool:
    classes = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(file.qualified(tested) in NAMES for tested in classes)


def _is_attempt(file: FileModel, call: ast.Call) -> bool:
    """Whether the TypeError that Variable raises for what isn't a tensor would be caught."""
    tries = (ancestor for ancestor in file.flow.ancestors(call) if isinstance(ancestor, ast.Try))
    return any(catches(h, "TypeError") and not catches(h, "AttributeError") for attempt in tries for h in attempt.handlers)
