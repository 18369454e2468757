"""Rule `dataparallel-prefix`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.effects import LOADS_OTHERWISE, RAISES_LESS, SAVES_ANOTHER_KIND
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .payload import entries
from .receivers import receivers
from .sites import Site, is_literal, own_sites, sites_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_WRAPPERS = frozenset({"torch.nn.DataParallel", "torch.nn.DistributedDataParallel", "apex.parallel.DistributedDataParallel"})
_PREFIX = re.compile(rb"""["']module\.?["']""")
"""Code that takes the prefix away itself, or looks for it."""


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
    effects = (
        SAVES_ANOTHER_KIND,
        LOADS_OTHERWISE,
        RAISES_LESS,
    )
    needles = (b"torch", b"save", b"Parallel")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield state dicts of wrappers that are saved."""
        if b"consume_prefix_in_state_dict" in file.source.data or _PREFIX.search(file.source.data):
            return
        told: set[ast.expr] = set()
        for site in own_sites(file, "torch.save"):
            for keys, value in entries(file, site.call):
                wrapper = _wrapper(file, value)
                if wrapper is not None and wrapper not in told:
                    told.add(wrapper)
                    yield self._finding(site, wrapper, keys)

    def _finding(self, site: Site, wrapper: ast.expr, keys: tuple[object, ...]) -> Finding:
        file, text = site.file, site.file.source.code(wrapper)
        loaded_into = _loaded_into(site, keys)
        message = f"the keys of `{text}` begin with `module.`"
        if loaded_into and all(_is_plain(file, receiver) for receiver in loaded_into):
            edit = ReplaceExpression(file.source.span(wrapper), f"{text}.module")
            return self.finding(file, wrapper, f"{message}, and a plain module loads them: save `{text}.module`", edit)
        advice = (
            f"save `{text}.module`, or take the prefix away with consume_prefix_in_state_dict_if_present before a plain module loads them"
        )
        return self.finding(file, wrapper, f"{message}: {advice}")


def _wrapper(file: FileModel, value: ast.expr, depth: int = 2) -> ast.expr | None:
    """What is always a wrapper in `wrapper.state_dict()`."""
    if isinstance(value, ast.Name) and depth:
        values = [file.flow.definition(binding).value for binding in file.flow.reaching(value)]
        return _wrapper(file, values[0], depth - 1) if len(values) == 1 and values[0] is not None else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "state_dict":
        return None
    owner = value.func.value
    made = _makers(file, owner)
    return owner if made and all(isinstance(v, ast.Call) and _makes_wrapper(file, v) for v in made) else None


def _makers(file: FileModel, owner: ast.expr) -> list[ast.expr | None]:
    """The values that a name or an attribute of this file's classes is given."""
    if isinstance(owner, ast.Name):
        return [file.flow.definition(binding).value for binding in file.flow.reaching(owner)]
    definition = file.functions.class_of(owner.value) if isinstance(owner, ast.Attribute) else None
    return [*file.classes.values(definition, owner.attr)] if definition is not None and isinstance(owner, ast.Attribute) else []


def _makes_wrapper(file: FileModel, call: ast.Call) -> bool:
    """`nn.DataParallel(…)`, with moves behind it."""
    while isinstance(call.func, ast.Attribute) and call.func.attr in {"to", "cuda", "cpu"} and isinstance(call.func.value, ast.Call):
        call = call.func.value
    return file.qualified(call.func) in _WRAPPERS


def _loaded_into(site: Site, keys: tuple[object, ...]) -> list[ast.expr]:
    """What loads the saved state in this file; empty when some of it isn't shown."""
    file, path = site.file, site.path
    loads = [load.call for load in own_sites(file, "torch.load") if path is not None and load.path == path]
    if is_literal(path) and path is not None and sites_elsewhere(file, "torch.load", path) != []:
        return []
    found = [receivers(file, load, keys) for load in loads]
    return [receiver for each in found for receiver in each or ()] if None not in found else []


def _is_plain(file: FileModel, receiver: ast.expr) -> bool:
    fact = file.fact(receiver)
    return fact is not None and fact.proven and fact.kind is Kind.MODULE and not fact.wrapped
