"""Rule `whole-model-save-load`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail, InsertAfter, ReplaceExpression
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .construction import Construction, change_after_making, construction, is_repeatable, is_wrapped
from .order import runs_before
from .path_key import path_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_ADVICE = "save model.state_dict(), and load it into a newly made model with load_state_dict"


@dataclass(frozen=True, slots=True)
class Load:
    """A load that binds one name: `net = torch.load(path).to(device)`."""

    call: ast.Call
    statement: ast.Assign
    chain: tuple[str, ...]
    """The calls after it, as written."""


class WholeModelSaveLoad(Rule):
    """Whole module pickled by `torch.save`, instead of its state dict.

    ## Why
    A pickled module holds a reference to its class and source file: it breaks when code moves, and since torch 2.6 it
    doesn't load by default, since loading it may run code.

    ## Example
    ```python
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.fc = nn.Linear(3, hidden)


    model = Net(4)
    torch.save(model, "net.pt")
    model = torch.load("net.pt")
    ```
    ```python
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.fc = nn.Linear(3, hidden)


    model = Net(4)
    torch.save(model.state_dict(), "net.pt")
    model = Net(4)
    model.load_state_dict(torch.load("net.pt", map_location="cpu", weights_only=True))
    ```

    ## Safety
    Unsafe: files that exist already need a one-off conversion. Saves and loads of one path are changed together or not
    at all, and only where the same constructor makes the module again at the load, nothing but its state dict was
    changed since it was made, no wrapper changes the keys, and the file is written in the same run. All else is
    reported with the reason. An explicit `weights_only=False` is the author's decision, and kept.

    ## References
    https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "whole-model-save-load"
    category = Category.CHECKPOINTS
    safety = Safety.UNSAFE
    needles = (b"torch", b"save")
    pattern = re.compile(rb"\bsave\b")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield saves of whole modules, with their loads where these are shown."""
        saves = [call for call in file.calls("torch.save") if len(call.args) > 1]
        whole = [call for call in saves if _is_module(file, call.args[0])]
        loads = file.calls("torch.load")
        for call in saves:
            if call in whole:
                finding = self._whole(file, call, whole, loads)
                if finding:
                    yield finding
            elif _holds_module(file, call.args[0]):
                yield self.finding(file, call, f"a module is pickled together with other objects; {_ADVICE}, each under a key")

    def _whole(self, file: FileModel, save: ast.Call, saves: list[ast.Call], loads: list[ast.Call]) -> Finding | None:
        key = path_key(file, save.args[1])
        paired = [load for load in loads if key is not None and load.args and path_key(file, load.args[0]) == key]
        if any(_is_explicitly_trusted(load) for load in paired):
            return None
        text = file.source.code(save.args[0])
        reason, made = _obstacle(file, save, saves, paired)
        if reason or made is None:
            return self.finding(file, save, f"`{text}` is pickled as a whole ({reason}); {_ADVICE}")
        span = file.source.span(save.args[0])
        edits: list[Edit] = [ChangeTail(span, span, ("state_dict",))]
        for load in paired:
            edits += _load_edits(file, save, made, _load(file, load))
        return self.finding(file, save, f"`{text}` is pickled as a whole: save its state dict, and load that into a new module", *edits)


def _is_module(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node)
    return fact is not None and fact.proven and fact.kind is Kind.MODULE


def _holds_module(file: FileModel, node: ast.expr) -> bool:
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else node.values if isinstance(node, ast.Dict) else []
    return any(_is_module(file, element) for element in elements)


def _is_explicitly_trusted(load: ast.Call) -> bool:
    return any(k.arg == "weights_only" and isinstance(k.value, ast.Constant) and k.value.value is False for k in load.keywords)


def _obstacle(file: FileModel, save: ast.Call, saves: list[ast.Call], paired: list[ast.Call]) -> tuple[str, Construction | None]:
    """Why save and loads can't be changed together (empty when they can), and how the module was made."""
    model = save.args[0]
    fact = file.fact(model)
    if is_wrapped(file, model):
        return "in a wrapper that changes its keys; unwrap it first", None
    if not paired:
        return "no load of this path is shown in this file", None
    made = construction(file, model)
    if made is None:
        return "how it was made isn't shown in one place", None
    key = path_key(file, save.args[1])
    if sum(path_key(file, other.args[1]) == key for other in saves) > 1:
        return "several saves write this path", None
    changed = change_after_making(file, model, fact.origin if fact else None)
    if changed:
        return changed, None
    for load in paired:
        reason = _load_obstacle(file, save, load, made)
        if reason:
            return reason, None
    return "", made


def _load_obstacle(file: FileModel, save: ast.Call, load: ast.Call, made: Construction) -> str:
    if _load(file, load) is None:
        return "a load is part of a larger expression"
    if len(load.args) > 2 or any(k.arg not in {"map_location", "weights_only"} for k in load.keywords):  # path, location
        return "a load has options of its own"
    if not is_repeatable(file, made.call, save, load):
        return "its constructor arguments aren't known where it is loaded"
    if made.moves and not all(_is_visible(file, move, save, load) for move in made.moves):
        return "the device it was on isn't known where it is loaded"
    return "" if runs_before(file, save, load) else "it isn't certain that the load reads what this run has saved"


def _is_visible(file: FileModel, move: str, save: ast.Call, load: ast.Call) -> bool:
    names = {n.id for n in ast.walk(ast.parse(f"x.{move}")) if isinstance(n, ast.Name)} - {"x"}
    return all(file.names.visible(n, load) is not None and file.names.visible(n, load) is file.names.visible(n, save) for n in names)


def _load(file: FileModel, call: ast.Call) -> Load | None:
    chain: list[str] = []
    node: ast.AST = call
    while isinstance(attribute := file.parent(node), ast.Attribute):
        method = file.parent(attribute)
        if not isinstance(method, ast.Call) or attribute.attr not in {"to", "cuda", "cpu", "eval", "train"}:
            return None
        chain.append(f"{attribute.attr}({', '.join(file.source.code(a) for a in method.args)})")
        node = method
    statement = file.parent(node)
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], (ast.Name, ast.Attribute))
    ):
        return None
    return Load(call, statement, tuple(chain))


def _load_edits(file: FileModel, save: ast.Call, made: Construction, load: Load | None) -> list[Edit]:
    assert load is not None
    name = file.source.code(load.statement.targets[0])
    location = next(
        (k.value for k in load.call.keywords if k.arg == "map_location"), load.call.args[1] if len(load.call.args) > 1 else None
    )
    where = file.source.code(location) if location is not None else '"cpu"'
    loaded = f"{file.source.code(load.call.func)}({file.source.code(load.call.args[0])}, map_location={where}, weights_only=True)"
    lines = [f"{name}.load_state_dict({loaded})"]
    calls = [*(made.moves if location is None else ()), *load.chain]
    if _saved_in_eval_mode(file, save) and not any(c.startswith(("eval", "train")) for c in calls):
        calls.append("eval()")
    lines += [f"{name}.{call}" for call in dict.fromkeys(calls)]
    return [
        ReplaceExpression(file.source.span(load.statement.value), made.code),
        InsertAfter(file.source.span(load.statement), "\n".join(lines)),
    ]


def _saved_in_eval_mode(file: FileModel, save: ast.Call) -> bool:
    """A pickled module comes back in the mode that it was saved in; a new one is in train mode."""
    identity = file.identities.of(save.args[0])
    modes = [
        e for call in file.methods("eval", "train") if call.lineno < save.lineno for e in file.training.at(call) if e.identity == identity
    ]
    return bool(modes) and modes[-1].happening is Happening.EVAL
