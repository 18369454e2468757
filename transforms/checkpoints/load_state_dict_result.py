"""Rule `load-state-dict-result`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceStatement
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .result_use import USES, Meaning, meaning_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER}
_MESSAGE = "load_state_dict returns the keys that didn't match, not what it loads into: call it as a statement"


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
    Safe where the result is then used as a module, or a method is chained to it: that has always raised. Unsafe where it
    is handed on under the name of the model. `status = net.load_state_dict(…)` and its missing keys are kept. Inside a
    larger expression it is reported.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    """

    name = "load-state-dict-result"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b"load_state_dict")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield results that are taken for what was loaded into."""
        for call in file.methods("load_state_dict"):
            if isinstance(file.parent(call), ast.Expr) or not _gives_keys(file, call):
                continue
            tail = _tail(file, call)
            meaning = Meaning.MODEL if tail else meaning_of(file, call)
            if meaning is Meaning.KEYS:
                continue
            statement = file.parent(tail[-1] if tail else call)
            code = _outdented(statement, _separated(file, call, statement, tail))
            edits = [ReplaceStatement(file.source.span(statement), code)] if code and isinstance(statement, ast.stmt) else []
            yield self.finding(file, call, _MESSAGE, *edits, safety=Safety.SAFE if meaning is Meaning.MODEL else Safety.UNSAFE)


def _gives_keys(file: FileModel, call: ast.Call) -> bool:
    """Whether the method is torch's own; that of a class may return its instance."""
    fact = file.fact(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if fact is None or not fact.proven or fact.kind not in _STATEFUL:
        return False
    return not file.classes.has_method(fact.origin, "load_state_dict")


def _tail(file: FileModel, call: ast.Call) -> list[ast.Call]:
    """The method calls behind it: `.eval()` in `Net().load_state_dict(sd).eval()`."""
    found: list[ast.Call] = []
    node: ast.AST = call
    while isinstance(attribute := file.parent(node), ast.Attribute) and attribute.attr in USES:
        method = file.parent(attribute)
        if not isinstance(method, ast.Call) or method.func is not attribute:
            break
        found.append(method)
        node = method
    return found


def _separated(file: FileModel, call: ast.Call, statement: ast.AST, tail: list[ast.Call]) -> str:
    """The statements that do what is meant; empty where they can't be told."""
    receiver = call.func.value  # type: ignore[attr-defined]  # a method
    source = file.source.code(receiver)
    load, *calls = [_link(file, link) for link in (call, *tail)]
    if not load or not all(calls):
        return ""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return _assigned(file, statement, receiver, load, calls)
    if not isinstance(receiver, (ast.Name, ast.Attribute)) or not isinstance(statement, (ast.Expr, ast.Return)):
        return ""
    loaded, last = f"{source}{load}", f"{source}{''.join(calls)}"
    return "\n".join([loaded, f"return {last}" if isinstance(statement, ast.Return) else last])


def _assigned(file: FileModel, statement: ast.Assign | ast.AnnAssign, receiver: ast.expr, load: str, calls: list[str]) -> str:
    target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
    if not isinstance(target, (ast.Name, ast.Attribute)) or (isinstance(statement, ast.Assign) and len(statement.targets) != 1):
        return ""
    if calls and calls[-1].lstrip(".").partition("(")[0] in {"parameters", "state_dict", "named_parameters", "modules", "children"}:
        return ""
    name, source = file.source.code(target), file.source.code(receiver)
    if name == source:
        return "\n".join([f"{name}{load}", *(f"{name}{call}" for call in calls)])
    head = file.source.data[file.source.span(statement).start : file.source.span(receiver).start].decode()
    if not head.rstrip().endswith("="):  # a parenthesis around the value
        return ""
    return "\n".join([f"{head}{source}", f"{name}{load}", *(f"{name}{call}" for call in calls)])


def _outdented(statement: ast.AST, code: str) -> str:
    """The same code without the indentation that the edit gives back; empty where a line of it has less."""
    column = getattr(statement, "col_offset", 0)
    lines = code.split("\n")
    if any(line[:1].isspace() and line[:column].strip() for line in lines):
        return ""
    return "\n".join(line[column:] if line[:1].isspace() else line for line in lines)


def _link(file: FileModel, call: ast.Call) -> str:
    """One call of a chain, from its dot on; empty where parentheses or comments stand in between."""
    start, end = file.source.span(call.func.value).end, file.source.span(call).end  # type: ignore[attr-defined]  # a method
    text = file.source.data[start:end].decode().lstrip()
    return text if text.startswith(".") else ""
