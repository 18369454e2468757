"""Rule `load-state-dict-from-path`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER}
_PATHS = frozenset({"os.path.join", "pathlib.Path", "os.path.abspath", "os.path.expanduser"})


class LoadStateDictFromPath(Rule):
    """`load_state_dict` that is given the path of a file.

    ## Why
    It takes the dictionary, and raises for a path: "Expected state_dict to be dict-like". Make the model, load the file,
    and then the state.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict("w.pt")
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("w.pt", map_location="cpu", weights_only=True))
    ```

    ## Safety
    Safe: the call has always raised. Only for modules, optimizers and schedulers that don't define `load_state_dict`
    themselves, and for what is proven to be a path.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    """

    name = "load-state-dict-from-path"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    needles = (b"torch", b"load_state_dict")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield calls whose first argument is a path."""
        for call in file.methods("load_state_dict"):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            fact = file.fact(receiver) if receiver is not None else None
            if not call.args or fact is None or not fact.proven or fact.kind not in _STATEFUL:
                continue
            if _is_path(file, call.args[0]) and not file.classes.has_method(fact.origin, "load_state_dict"):
                yield self._finding(file, call, call.args[0])

    def _finding(self, file: FileModel, call: ast.Call, path: ast.expr) -> Finding:
        message = "load_state_dict takes a dictionary, not a path: load the file first"
        load, code = file.spelling("torch.load", call), file.source.code(path)
        if load is None:
            return self.finding(file, call, message)
        quote = "'" if code.startswith("'") else '"'
        loaded = f"{load}({code}, map_location={quote}cpu{quote}, weights_only=True)"
        edits: list[Edit] = [ReplaceExpression(file.source.span(path), loaded)]
        edits += [NeedImport("torch")] if file.lacks_torch(call) else []
        return self.finding(file, call, message, *edits)


def _is_path(file: FileModel, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        bindings = file.names.bindings(node)
        value = file.flow.definition(bindings[0]).value if len(bindings) == 1 else None
        return value is not None and not isinstance(value, ast.Name) and _is_path(file, value)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return _is_path(file, node.left) or _is_path(file, node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and file.qualified(node.func) in _PATHS)
