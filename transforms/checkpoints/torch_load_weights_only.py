"""Rule `torch-load-weights-only`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddKeyword, ReplaceExpression
from torchfix_codemods.effects import LOADS_WITH_OPTIONS, WARNS_LESS
from torchfix_codemods.model import Kind
from torchfix_codemods.rule import Category, Rule, Safety

from .load_use import Use, use_of
from .payload import entries, saved_object
from .rejected import rejected_parts
from .sites import Site, is_literal, own_sites, sites_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_OPTIONS = "save plain values and state dicts, or pass weights_only=False if you trust the file"
_PLAIN = {Kind.STATE_DICT, Kind.NUMBER, Kind.TEXT}
_DOUBTFUL = re.compile(
    r"arg(s|uments)?$|^opts?$|options|cfg|conf(ig)?$|h(yper_?)?param|vocab|criterion|tokenizer|(numpy|np)_", re.IGNORECASE
)


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
    effects = (
        LOADS_WITH_OPTIONS,
        WARNS_LESS,
    )
    needles = (b"torch", b"load")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield loads of weights that aren't restricted to weights, and loads of what isn't weights."""
        if b"safe_globals" in file.source.data:
            return
        for site in own_sites(file, "torch.load"):
            given = next((k.value for k in site.call.keywords if k.arg == "weights_only"), None)
            trusts = isinstance(given, ast.Constant) and given.value is False
            if (given is None or trusts) and not _decides_for_itself(site.call):
                yield from self._load(site, given)

    def _load(self, site: Site, given: ast.expr | None) -> Iterator[Finding]:
        file, call = site
        saves = _saves(site)
        if any(_is_rejected(save) for save in saves):
            if given is None:
                yield self.finding(file, call, f"what is saved there isn't weights alone, and doesn't load since torch 2.6: {_OPTIONS}")
            return
        pure = bool(saves) and all(_is_plain(save) for save in saves)
        if use_of(file, call) not in {Use.COPIED, Use.MAPPING}:
            return
        doubt = "" if pure else _doubt(site, saves)
        if doubt:
            if given is None:
                yield self.finding(file, call, f"if {doubt} an object of a class, it doesn't load since torch 2.6: {_OPTIONS}")
            return
        span = file.source.span(call)
        edit = AddKeyword(span, "weights_only", "True") if given is None else ReplaceExpression(file.source.span(given), "True")
        message = "weights need no code from the file: pass weights_only=True"
        yield self.finding(file, call, message, edit, safety=Safety.SAFE if pure else Safety.UNSAFE)


def _decides_for_itself(call: ast.Call) -> bool:
    """Whether a pickle module, an encoding or unpacked options say how to unpickle; the third position is the module."""
    named = any(k.arg in {"pickle_module", "encoding", None} for k in call.keywords)
    return named or len(call.args) > 2 or any(isinstance(a, ast.Starred) for a in call.args)  # file, location


def _saves(load: Site) -> list[Site]:
    """The saves of the same path, in this file and (for a literal path) in others."""
    path = load.path
    if path is None:
        return []
    own = [site for site in own_sites(load.file, "torch.save") if site.path == path]
    elsewhere = sites_elsewhere(load.file, "torch.save", path) if is_literal(path) else []
    return [site for site in [*own, *(elsewhere or [])] if saved_object(site.call) is not None]


def _is_rejected(save: Site) -> bool:
    """Whether a load of weights alone refuses what is saved: modules are pickled by reference to their class."""
    modules = any(save.file.kinds.is_kind(value, Kind.MODULE) for _, value in entries(save.file, save.call))
    return modules or bool(rejected_parts(save.file, save.call))


def _is_plain(save: Site) -> bool:
    """Whether nothing but states, tensors, numbers and texts is saved."""
    held = [save.file.fact(value) for _, value in entries(save.file, save.call)]
    return bool(held) and all(fact is not None and fact.proven and (fact.is_tensor or fact.kind in _PLAIN) for fact in held)


def _doubt(load: Site, saves: list[Site]) -> str:
    """What makes it uncertain that nothing but weights is loaded; empty when nothing does."""
    file, call = load
    read = set(_keys_read(file, call))
    doubtful = _doubtful(read) or (_doubtful(_keys_beside(file, read)) if read and not saves else None)
    if doubtful is not None:
        return f"`{doubtful}` holds"
    parent = file.parent(call)
    is_state = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "load_state_dict"
    unpaired = () if saves or is_state else own_sites(file, "torch.save")
    return "this checkpoint, like one that is saved here, holds" if any(_is_rejected(save) for save in unpaired) else ""


def _doubtful(keys: set[str]) -> str | None:
    """The first key under which people keep options or other objects."""
    return next((key for key in sorted(keys) if _DOUBTFUL.search(key)), None)


def _keys_beside(file: FileModel, read: set[str]) -> set[str]:
    """The other keys of dictionaries written in the file that look like the checkpoint: a function of theirs may save it."""
    texts = [{k.value for k in d.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)} for d in file.index.all(ast.Dict)]
    return {key for keys in texts if keys & read for key in keys}


def _keys_read(file: FileModel, node: ast.expr) -> list[str]:
    """The keys that are read from what is loaded."""
    parent = file.parent(node)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        target = parent.targets[0]
        reads = [read for read in file.kinds.reads(target.id) if target in file.flow.reaching(read)]
        return [key for read in reads for key in _keys_read(file, read)]
    key = parent.slice if isinstance(parent, ast.Subscript) and parent.value is node else None
    if isinstance(parent, ast.Attribute) and parent.attr in {"get", "pop"}:
        call = file.parent(parent)
        key = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return [key.value] if isinstance(key, ast.Constant) and isinstance(key.value, str) else []
