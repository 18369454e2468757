"""Rule `load-state-dict-result`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceStatement
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_MODULE_USES = frozenset("eval train to cuda cpu parameters state_dict forward half float named_parameters modules children".split())


class LoadStateDictResult(Rule):
    """Model that is replaced by the result of its `load_state_dict`.

    ## Why
    `load_state_dict` changes the model in place, and returns the keys that didn't match: to call that, or to put it into
    eval mode, raises.

    ## Example
    ```python
    import torch
    from torch import nn

    net = nn.Linear(2, 1).load_state_dict(torch.load("w.pt"))
    net.eval()
    ```
    ```python
    import torch
    from torch import nn

    net = nn.Linear(2, 1)
    net.load_state_dict(torch.load("w.pt"))
    net.eval()
    ```

    ## Safety
    Safe: what raised now runs. Only where the result is used as a module afterwards; `status = net.load_state_dict(…)`
    and its missing keys are kept.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    """

    name = "load-state-dict-result"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    needles = (b"torch", b"load_state_dict")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield assignments of the result to a name that is then used as the model."""
        for call in file.methods("load_state_dict"):
            tail = _chain(file, call)
            statement = file.parent(tail[-1] if tail else call)
            target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
            if isinstance(statement, ast.Assign) and isinstance(target, ast.Name):
                code = _separated(file, call, target, tail)
                if code and (tail or _is_used_as_module(file, target)):
                    message = "load_state_dict returns the keys that didn't match, not the model: call it as a statement"
                    yield self.finding(file, call, message, ReplaceStatement(file.source.span(statement), code))


def _chain(file: FileModel, call: ast.Call) -> list[ast.Call]:
    """The method calls behind it: `.eval()` in `Net().load_state_dict(sd).eval()`."""
    found: list[ast.Call] = []
    node: ast.AST = call
    while isinstance(attribute := file.parent(node), ast.Attribute) and attribute.attr in _MODULE_USES:
        method = file.parent(attribute)
        if not isinstance(method, ast.Call) or method.func is not attribute:
            break
        found.append(method)
        node = method
    return found


def _separated(file: FileModel, call: ast.Call, target: ast.Name, tail: list[ast.Call]) -> str:
    """The statements that do what is meant; empty where that isn't certain."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    fact = file.fact(receiver) if receiver is not None else None
    if receiver is None or fact is None or not fact.proven or fact.kind is not Kind.MODULE:
        return ""
    own = isinstance(receiver, ast.Name) and receiver.id == target.id
    if not own and not isinstance(receiver, ast.Call):
        return ""
    whole = file.source.code(call)
    load = whole if own else f"{target.id}{whole[len(file.source.code(receiver)) :]}"
    lines = [] if own else [f"{target.id} = {file.source.code(receiver)}"]
    after = [f"{target.id}.{method.func.attr}({_arguments(file, method)})" for method in tail]  # type: ignore[attr-defined]  # methods
    return "\n".join([*lines, load, *after])


def _arguments(file: FileModel, call: ast.Call) -> str:
    values = [*map(file.source.code, call.args), *(f"{k.arg}={file.source.code(k.value)}" for k in call.keywords)]
    return ", ".join(values)


def _is_used_as_module(file: FileModel, target: ast.Name) -> bool:
    """Whether what the name holds is called, or asked for what only a module has, and never for keys."""
    as_module = False
    for read in file.kinds.reads(target.id):
        if target not in file.flow.reaching(read):
            continue
        parent = file.parent(read)
        if isinstance(parent, ast.Attribute):
            if parent.attr in {"missing_keys", "unexpected_keys"}:
                return False
            as_module = as_module or parent.attr in _MODULE_USES
        as_module = as_module or (isinstance(parent, ast.Call) and parent.func is read)
    return as_module
