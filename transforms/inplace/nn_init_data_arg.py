"""Rule `nn-init-data-arg`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail
from torchfix_codemods.model import Happening
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.torch_api import INIT_FUNCTIONS
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class NnInitDataArg(Rule):
    """`nn.init` function called on `.data` instead of the parameter.

    ## Why
    The functions of `torch.nn.init` write under `no_grad` already. `.data` hides the write from autograd's version
    counter, so that a wrong use goes unnoticed.

    ## Example
    ```python
    import torch.nn as nn

    layer = nn.Linear(2, 2)
    nn.init.xavier_uniform_(layer.weight.data)
    ```
    ```python
    import torch.nn as nn

    layer = nn.Linear(2, 2)
    nn.init.xavier_uniform_(layer.weight)
    ```

    ## Safety
    Safe: values and random numbers are the same for all functions; the parameter stays a leaf; only its version
    counter moves. Kept where the returned tensor is used (it would become the parameter itself), where the function
    runs a backward (the counted write could then raise), and for arguments that aren't proven to be tensors.

    ## References
    https://docs.pytorch.org/docs/stable/nn.init.html
    """

    name = "nn-init-data-arg"
    category = Category.INPLACE
    safety = Safety.SAFE
    needles = (b"torch", b"init", b".data")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield statements that initialise the `.data` of a tensor."""
        for call in file.calls(*INIT_FUNCTIONS):
            argument = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "tensor"), None)
            if not (isinstance(argument, ast.Attribute) and argument.attr == "data"):
                continue
            if not isinstance(file.parent(call), ast.Expr) or _runs_backward(file, call):
                continue
            edit = ChangeTail(file.source.span(argument), file.source.span(argument.value))
            if file.kinds.is_tensor(argument.value):
                yield self.finding(file, call, f"pass `{file.source.code(argument.value)}` itself: nn.init works under no_grad", edit)
            elif _looks_like_parameter(file, argument.value):
                yield self.finding(file, call, f"if `{file.source.code(argument.value)}` is a parameter, pass it without `.data`")


def _runs_backward(file: FileModel, call: ast.Call) -> bool:
    function = file.flow.function(call)
    if not isinstance(function, FUNCTIONS):
        return False
    return any(event.happening is Happening.BACKWARD for event in file.training.events(function.body))


def _looks_like_parameter(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node)
    return (fact is None or fact.is_tensor) and isinstance(node, ast.Attribute) and node.attr.startswith(("weight", "bias"))
