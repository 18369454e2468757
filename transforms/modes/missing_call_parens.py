"""Rule `missing-call-parens`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import catches
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_METHODS: dict[str, frozenset[Kind]] = {
    "eval": frozenset({Kind.MODULE}),
    "train": frozenset({Kind.MODULE}),
    "zero_grad": frozenset({Kind.MODULE, Kind.OPTIMIZER}),
    "step": frozenset({Kind.OPTIMIZER, Kind.SCHEDULER}),
    "update": frozenset({Kind.SCALER}),
    "backward": frozenset({Kind.TENSOR, Kind.SCALAR_TENSOR}),
    "zero_": frozenset({Kind.TENSOR, Kind.SCALAR_TENSOR}),
}
"""Methods that are called for their effect and need no argument, and what has them."""


class MissingCallParens(Rule):
    """Method that is named as a statement, and never called.

    ## Why
    `model.eval` without parentheses does nothing: the model stays in train mode, the optimizer makes no step, and
    nothing warns.

    ## Example
    ```python
    import torch


    def predict(model: torch.nn.Module, x):
        model.eval
        with torch.no_grad():
            return model(x)
    ```
    ```python
    import torch


    def predict(model: torch.nn.Module, x):
        model.eval()
        with torch.no_grad():
            return model(x)
    ```

    ## Safety
    Unsafe: what did nothing now acts, which is the intent. Only on receivers that are proven to be modules, optimizers,
    schedulers, scalers or tensors; a probe for the attribute in a `try` is kept.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval
    """

    name = "missing-call-parens"
    category = Category.MODES
    safety = Safety.UNSAFE
    needles = (b"torch",)

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield statements that are nothing but such a method."""
        for statement in file.index.all(ast.Expr):
            node = statement.value
            if isinstance(node, ast.Attribute) and node.attr in _METHODS and not _is_probe(file, statement):
                fact = file.fact(node.value)
                if fact is not None and fact.proven and fact.kind in _METHODS[node.attr]:
                    code = file.source.code(node)
                    edit = ReplaceExpression(file.source.span(node), f"{code}()")
                    yield self.finding(file, node, f"`{code}` without parentheses does nothing: call it", edit)


def _is_probe(file: FileModel, statement: ast.Expr) -> bool:
    """Whether the statement asks for the attribute: an AttributeError would be caught."""
    tries = (ancestor for ancestor in file.flow.ancestors(statement) if isinstance(ancestor, ast.Try))
    return any(catches(handler, "AttributeError") for attempt in tries for handler in attempt.handlers)
