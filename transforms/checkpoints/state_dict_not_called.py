"""Rule `state-dict-not-called`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.effects import LOADS_OTHERWISE, RAISES_LESS, SAVES_ANOTHER_KIND
from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.rule import Category, Rule, Safety

from .payload import entries
from .receivers import receivers
from .sites import Site, own_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER}


class StateDictNotCalled(Rule):
    """`model.state_dict` that is saved without being called.

    ## Why
    The method itself is pickled, and the whole model with it: the file doesn't load by default, and what does load is no
    dictionary.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    torch.save(model.state_dict, "w.pt")
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    torch.save(model.state_dict(), "w.pt")
    ```

    ## Safety
    Unsafe: the file holds something else, which is the intent; safe where the same file loads it into something, which
    has always raised. Only for modules, optimizers, schedulers and scalers; an attribute of that name that holds a
    dictionary is kept. What only has the name of a model is reported.

    ## References
    https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "state-dict-not-called"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    effects = (
        SAVES_ANOTHER_KIND,
        LOADS_OTHERWISE,
        RAISES_LESS,
    )
    needles = (b"torch", b"save", b".state_dict")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield methods that are saved, alone or in a container."""
        told: set[ast.expr] = set()
        for site in own_sites(file, "torch.save"):
            for keys, value in entries(file, site.call):
                owner = _owner(file, value)
                if owner is None or value in told:
                    continue
                told.add(value)
                code = file.source.code(value)
                edits = [ReplaceExpression(file.source.span(value), f"{code}()")] if _is_stateful(file, owner) else []
                if edits or _is_likely_stateful(file, owner):
                    safety = Safety.SAFE if _is_loaded_as_state(site, keys) else Safety.UNSAFE
                    message = f"`{code}` is the method, and pickles the whole object: save {code}()"
                    yield self.finding(file, value, message, *edits, safety=safety)


def _owner(file: FileModel, value: ast.expr) -> ast.expr | None:
    """The object whose method a value is, written out or through a name."""
    if isinstance(value, ast.Attribute):
        return value.value if value.attr == "state_dict" and not file.qualified(value) else None
    bindings = file.flow.reaching(value) if isinstance(value, ast.Name) else []
    definition = file.flow.definition(bindings[0]) if len(bindings) == 1 else None
    if definition is None or definition.form is not Form.ASSIGNED or definition.path or not isinstance(definition.value, ast.Attribute):
        return None
    return _owner(file, definition.value)


def _is_stateful(file: FileModel, owner: ast.expr) -> bool:
    """Whether torch's own method is meant, and not an attribute or property of the class."""
    fact = file.fact(owner)
    if fact is None and isinstance(owner, ast.Attribute) and owner.attr == "module":
        return _is_stateful(file, owner.value)
    if fact is None or not fact.proven or fact.kind not in _STATEFUL:
        return False
    if not isinstance(fact.origin, ast.ClassDef):
        return True
    method = file.classes.method(fact.origin, "state_dict")
    return not (method is not None and method.decorator_list) and not file.classes.assigns(fact.origin, "state_dict")


def _is_likely_stateful(file: FileModel, owner: ast.expr) -> bool:
    """A parameter that only its name tells of."""
    fact = file.fact(owner)
    return fact is not None and not fact.proven and fact.kind in _STATEFUL


def _is_loaded_as_state(site: Site, keys: tuple[object, ...]) -> bool:
    """Whether the file loads the checkpoint into something: that has always raised."""
    path = site.path
    loads = [load for load in own_sites(site.file, "torch.load") if path is not None and load.path == path]
    return bool(loads) and all(receivers(site.file, load.call, keys) for load in loads)
