"""Rule `whole-model-save-load`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail, InsertAfter, ReplaceExpression
from torchfix_codemods.effects import LOADS_OTHERWISE, RAISES_LESS, SAVES_ANOTHER_KIND
from torchfix_codemods.model import Happening, Kind
from torchfix_codemods.rule import Category, Partners, Rule, Safety

from .pairing import Pair, pair_of
from .sites import Site, is_literal, name_of, own_sites, sites_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

    from .pairing import Load

_ADVICE = "save model.state_dict(), and load it into a newly made model with load_state_dict"


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
    at all, across the files of the project too, and only where the same constructor makes the module again at the load,
    nothing but its state dict was changed since it was made, and no wrapper changes the keys. Inside one file the load
    has to follow the save; between files a literal path has to name the checkpoint. All else is reported with the
    reason. `torchfix-codemods explain whole-model-save-load --script` prints the script for the conversion. An explicit `weights_only=False` is the author's decision, and kept.

    ## References
    https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "whole-model-save-load"
    category = Category.CHECKPOINTS
    safety = Safety.UNSAFE
    effects = (
        SAVES_ANOTHER_KIND,
        LOADS_OTHERWISE,
        RAISES_LESS,
    )
    pattern = re.compile(rb"\b(save|load)\b")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield saves of whole modules, with their loads where these are shown, and loads of what other files save."""
        for site in own_sites(file, "torch.save"):
            model = site.call.args[0] if len(site.call.args) > 1 else None
            if model is None:
                continue
            if _is_module(file, model):
                yield from self._save(site)
            elif _holds_module(file, model):
                yield self.finding(file, site.call, f"a module is pickled together with other objects; {_ADVICE}, each under a key")
        for site in own_sites(file, "torch.load"):
            yield from self._load(site)

    def _save(self, save: Site) -> Iterator[Finding]:
        pair = pair_of(save)
        if pair is None:
            return
        file, model = save.file, save.call.args[0]
        text = file.source.code(model)
        if pair.obstacle or pair.made is None:
            yield self.finding(file, save.call, f"`{text}` is pickled as a whole ({pair.obstacle}); {_ADVICE}")
            return
        span = file.source.span(model)
        edits: list[Edit] = [ChangeTail(span, span, ("state_dict",))]
        for load in pair.loads:
            edits += _load_edits(pair, load) if load.site.file is file else []
        others = tuple(dict.fromkeys(load.site.file.view.path for load in pair.loads if load.site.file is not file))
        also = "".join(f", in {name_of(load.site.file, file)} too" for load in pair.loads if load.site.file is not file)
        message = f"`{text}` is pickled as a whole: save its state dict, and load that into a new module{also}"
        yield self.finding(file, save.call, message, *edits, partners=Partners(repr(save.path), others) if others else None)

    def _load(self, load: Site) -> Iterator[Finding]:
        """A load of what another file saves: changed when that file changes its save."""
        if not is_literal(load.path) or load.path is None or _is_sunk(load):
            return
        for save in sites_elsewhere(load.file, "torch.save", load.path) or ():
            pair = pair_of(save) if len(save.call.args) > 1 and _is_module(save.file, save.call.args[0]) else None
            if pair is None or pair.obstacle or pair.made is None:
                continue
            # The other file's view of this one is of the text on disk; what is edited is the text at hand.
            mine = pair.load_of(load)
            if mine is not None:
                paths = (save.file.view.path, *(other.site.file.view.path for other in pair.loads))
                partners = Partners(repr(load.path), tuple(dict.fromkeys(path for path in paths if path != load.file.view.path)))
                message = f"a module that {name_of(save.file, load.file)} pickles as a whole: load its state dict into a new module"
                yield self.finding(load.file, load.call, message, *_load_edits(pair, mine), partners=partners)
            return


def _is_module(file: FileModel, node: ast.expr) -> bool:
    fact = file.fact(node)
    return fact is not None and fact.proven and fact.kind is Kind.MODULE


def _holds_module(file: FileModel, node: ast.expr) -> bool:
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else node.values if isinstance(node, ast.Dict) else []
    return any(_is_module(file, element) for element in elements)


def _is_sunk(load: Site) -> bool:
    """A load that goes straight into `load_state_dict`."""
    call = load.file.parent(load.call)
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"


def _load_edits(pair: Pair, load: Load) -> list[Edit]:
    file, call = load.site
    made = pair.made
    assert made is not None
    name = file.source.code(load.statement.targets[0])
    where = file.source.code(load.location) if load.location is not None else _quoted(load, "cpu")
    loaded = f"{file.source.code(call.func)}({file.source.code(call.args[0])}, map_location={where}, weights_only=True)"
    calls = [*(made.moves if load.location is None and not load.moves else ()), *load.chain]
    if _saved_in_eval_mode(pair.save) and not any(c.startswith(("eval", "train")) for c in calls):
        calls.append("eval()")
    lines = [f"{name}.load_state_dict({loaded})", *(f"{name}.{call}" for call in dict.fromkeys(calls))]
    return [
        ReplaceExpression(file.source.span(load.statement.value), load.constructor),
        InsertAfter(file.source.span(load.statement), "\n".join(lines)),
    ]


def _quoted(load: Load, text: str) -> str:
    """A text in the quotes that the path next to it has."""
    path = load.site.call.args[0]
    single = isinstance(path, ast.Constant) and load.site.file.source.code(path).startswith("'")
    return f"'{text}'" if single else f'"{text}"'


def _saved_in_eval_mode(save: Site) -> bool:
    """A pickled module comes back in the mode that it was saved in; a new one is in train mode."""
    file = save.file
    identity = file.identities.of(save.call.args[0])
    earlier = [call for call in file.methods("eval", "train") if call.lineno < save.call.lineno]
    modes = [event for call in earlier for event in file.training.at(call) if event.identity == identity]
    return bool(modes) and modes[-1].happening is Happening.EVAL
