"""Rule `dataparallel-prefix`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .payload import entries
from .sites import Site, is_literal, own_sites, sites_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_WRAPPERS = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel"})


class DataparallelPrefix(Rule):
    """State dict of a DataParallel wrapper, whose keys all begin with `module.`.

    ## Why
    The wrapper's keys fit only the wrapper: a plain model that is to load them misses every key. The module inside has
    the plain ones.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.DataParallel(nn.Linear(2, 1))
    torch.save(model.state_dict(), "dp.pt")
    single = nn.Linear(2, 1)
    single.load_state_dict(torch.load("dp.pt", weights_only=True))
    ```
    ```python
    import torch
    from torch import nn

    model = nn.DataParallel(nn.Linear(2, 1))
    torch.save(model.module.state_dict(), "dp.pt")
    single = nn.Linear(2, 1)
    single.load_state_dict(torch.load("dp.pt", weights_only=True))
    ```

    ## Safety
    Unsafe: the file has other keys. Only where every load of the path is in the same file and goes into a plain module;
    else reported. A model that is wrapped only on some machines may have no `module`, and is left alone.

    ## References
    https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "dataparallel-prefix"
    category = Category.CHECKPOINTS
    safety = Safety.UNSAFE
    needles = (b"torch", b"save", b"Parallel")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield state dicts of wrappers that are saved."""
        for site in own_sites(file, "torch.save"):
            saved = site.call.args[0] if len(site.call.args) > 1 else None
            for key, value in [("", saved), *entries(file, saved)] if saved is not None else ():
                wrapper = _wrapper(file, value)
                if wrapper is not None:
                    yield self._finding(site, wrapper, key)

    def _finding(self, site: Site, wrapper: ast.expr, key: str) -> Finding:
        file, text = site.file, site.file.source.code(wrapper)
        receivers = _receivers(site, key)
        message = f"the keys of `{text}` begin with `module.`"
        if receivers and all(_is_plain(file, receiver) for receiver in receivers):
            edit = ReplaceExpression(file.source.span(wrapper), f"{text}.module")
            return self.finding(file, wrapper, f"{message}, and a plain module loads them: save `{text}.module`", edit)
        advice = (
            f"save `{text}.module`, or take the prefix away with consume_prefix_in_state_dict_if_present before a plain module loads them"
        )
        return self.finding(file, wrapper, f"{message}: {advice}")


def _wrapper(file: FileModel, value: ast.expr | None) -> ast.expr | None:
    """What is always a wrapper in `wrapper.state_dict()`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "state_dict":
        return None
    owner = value.func.value
    bindings = file.flow.reaching(owner) if isinstance(owner, ast.Name) else []
    values = [file.flow.definition(binding).value for binding in bindings]
    wrapped = bool(values) and all(isinstance(v, ast.Call) and _makes_wrapper(file, v) for v in values)
    return owner if wrapped else None


def _makes_wrapper(file: FileModel, call: ast.Call) -> bool:
    """`nn.DataParallel(…)`, with moves behind it."""
    while isinstance(call.func, ast.Attribute) and call.func.attr in {"to", "cuda", "cpu"} and isinstance(call.func.value, ast.Call):
        call = call.func.value
    return file.qualified(call.func) in _WRAPPERS


def _receivers(site: Site, key: str) -> list[ast.expr]:
    """What loads the saved state in this file; empty when some of it isn't shown."""
    file, path = site.file, site.path
    loads = [load.call for load in own_sites(file, "torch.load") if path is not None and load.path == path]
    if is_literal(path) and path is not None and sites_elsewhere(file, "torch.load", path) != []:
        return []
    found = [_receiver(file, load, key) for load in loads]
    return [receiver for receiver in found if receiver is not None] if None not in found else []


def _receiver(file: FileModel, node: ast.AST, key: str) -> ast.expr | None:
    """The module whose `load_state_dict` a loaded value goes into, through one name and the key it was saved under."""
    parent = file.parent(node)
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        target = parent.targets[0]
        reads = [n for n in file.kinds.reads(target.id) if target in file.flow.reaching(n)]
        found = [_receiver(file, read, key) for read in reads]
        return next((receiver for receiver in found if receiver is not None), None)
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant) and parent.slice.value == key:
        return _receiver(file, parent, "")
    if isinstance(parent, ast.Call) and not key and isinstance(parent.func, ast.Attribute) and parent.func.attr == "load_state_dict":
        return parent.func.value
    return None


def _is_plain(file: FileModel, receiver: ast.expr) -> bool:
    fact = file.fact(receiver)
    return fact is not None and fact.proven and fact.kind is Kind.MODULE and not fact.wrapped
