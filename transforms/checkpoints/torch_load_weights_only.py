"""Rule `torch-load-weights-only`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .load_use import Use, use_of
from .payload import rejected_parts
from .sites import Site, is_literal, own_sites, path_argument, sites_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class TorchLoadWeightsOnly(Rule):
    """Weights that are loaded by a `torch.load` which may run code from the file.

    ## Why
    A pickle can run anything. With `weights_only=True` (the default since torch 2.6) only tensors and plain values are
    accepted, which is all that a state dict holds.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("w.pt", map_location="cpu", weights_only=False))
    ```
    ```python
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load("w.pt", map_location="cpu", weights_only=True))
    ```

    ## Safety
    Safe where the file is seen to be written from a state dict alone; else unsafe, since an old checkpoint may hold more.
    Only for what goes into `load_state_dict`. What isn't weights is reported: load it with `weights_only=False` only if
    you trust its source. Code that names safe globals or a pickle module has decided for itself.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """

    name = "torch-load-weights-only"
    category = Category.CHECKPOINTS
    safety = Safety.SAFE
    needles = (b"torch", b"load")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loads of weights that aren't restricted to weights, and loads of what isn't weights."""
        if b"safe_globals" in file.source.data:
            return
        for site in own_sites(file, "torch.load"):
            call = site.call
            if any(k.arg in {"pickle_module", None} for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
                continue
            given = next((k.value for k in call.keywords if k.arg == "weights_only"), None)
            if given is None or (isinstance(given, ast.Constant) and given.value is False):
                yield from self._load(site, given)

    def _load(self, site: Site, given: ast.expr | None) -> Iterator[Finding]:
        file, call = site
        saves = _saves(site)
        if any(rejected_parts(save.file, save.call.args[0]) for save in saves) or any(_is_module(save) for save in saves):
            if given is None:
                options = "save plain values and state dicts, or pass weights_only=False if you trust the file"
                yield self.finding(file, call, f"what is saved there isn't weights alone, and doesn't load since torch 2.6: {options}")
            return
        if use_of(file, call) is Use.DIRECT:
            return
        pure = bool(saves) and all(_is_state_dict(save) for save in saves)
        edit = (
            AddKeyword(file.source.span(call), "weights_only", "True")
            if given is None
            else ReplaceExpression(file.source.span(given), "True")
        )
        message = "weights need no code from the file: pass weights_only=True"
        yield self.finding(file, call, message, edit, safety=Safety.SAFE if pure else Safety.UNSAFE)


def _saves(load: Site) -> list[Site]:
    """The saves of the same path, in this file and (for a literal path) in others."""
    path = load.path
    if path is None:
        return []
    own = [site for site in own_sites(load.file, "torch.save") if site.path == path]
    elsewhere = sites_elsewhere(load.file, "torch.save", path) if is_literal(path) else []
    return [site for site in [*own, *(elsewhere or [])] if site.call.args and path_argument(site.call, saves=True) is not None]


def _is_module(save: Site) -> bool:
    fact = save.file.fact(save.call.args[0])
    return fact is not None and fact.proven and fact.kind is Kind.MODULE


def _is_state_dict(save: Site) -> bool:
    fact = save.file.fact(save.call.args[0])
    return fact is not None and fact.proven and fact.kind is Kind.STATE_DICT
