"""Rule `checkpoint-unsafe-payload`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import NeedImport, ReplaceExpression
from torchfix_codemods.effects import LOADS_OTHERWISE, RAISES_LESS, SAVES_ANOTHER_KIND
from torchfix_codemods.rule import Category, Rule, Safety

from .rejected import NAMESPACE, NUMPY, NUMPY_INTEGER, Part, rejected_parts
from .sites import Site, is_literal, own_sites, sites_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_STATE = "save its state_dict()"
_CONVERSIONS = {NUMPY: "float", NUMPY_INTEGER: "int"}
_ADVICE = {
    "optimizer": _STATE,
    "scheduler": _STATE,
    "scaler": _STATE,
    "numpy array": "save torch.as_tensor(…) of it",
    "Generator": "save its get_state()",
    "parsed arguments": "save vars(…) of it",
    "pathlib.Path": "save str(…) of it",
    "defaultdict": "save dict(…) of it",
    NAMESPACE: "save vars(…) of it",
}


class CheckpointUnsafePayload(Rule):
    """Checkpoint with a value that doesn't load by default since torch 2.6.

    ## Why
    `torch.load` accepts tensors, plain values and containers. A Namespace, a numpy scalar or an optimizer in the same
    file makes it raise an UnpicklingError, and the weights beside it are as good as lost.

    ## Example
    ```python
    import numpy as np
    import torch

    best = np.mean([0.5, 0.7])
    torch.save({"epoch": 2, "best_acc": best}, "m.pt")
    ```
    ```python
    import numpy as np
    import torch

    best = np.mean([0.5, 0.7])
    torch.save({"epoch": 2, "best_acc": float(best)}, "m.pt")
    ```

    ## Safety
    Unsafe: what is loaded has another type (a float, a dictionary). A Namespace is saved as a dictionary only where all
    loads of the path are in the same file, and are changed with it. Everything else is reported, with what to save
    instead. Kept where the file names safe globals, or loads with `weights_only=False`.

    ## References
    https://docs.pytorch.org/docs/stable/notes/serialization.html#weights-only
    """

    name = "checkpoint-unsafe-payload"
    category = Category.CHECKPOINTS
    safety = Safety.UNSAFE
    effects = (
        SAVES_ANOTHER_KIND,
        LOADS_OTHERWISE,
        RAISES_LESS,
    )
    needles = (b"torch", b"save")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield values of saved dictionaries that a load of weights alone rejects."""
        if b"safe_globals" in file.source.data or b"weights_only=False" in file.source.data:
            return
        told: set[ast.expr] = set()
        for site in own_sites(file, "torch.save"):
            for part in rejected_parts(file, site.call):
                if part.value not in told:
                    told.add(part.value)
                    yield self._finding(site, part)

    def _finding(self, site: Site, part: Part) -> Finding:
        file, value = site.file, site.file.source.code(part.value)
        message = f"`{value}` ({part.kind}) doesn't load by default since torch 2.6"
        if part.kind in _CONVERSIONS:
            code = f"{_CONVERSIONS[part.kind]}({value})"
            return self.finding(file, part.value, f"{message}: save {code}", ReplaceExpression(file.source.span(part.value), code))
        edits = _as_dictionary(site, part) if part.kind == NAMESPACE else None
        if edits is not None:
            return self.finding(file, part.value, f"{message}: save vars({value}), and make a Namespace of it where it is loaded", *edits)
        return self.finding(file, part.value, f"{message}: {_ADVICE.get(part.kind, 'save plain values')}")


def _as_dictionary(site: Site, part: Part) -> list[Edit] | None:
    """Save a Namespace as a dictionary, and turn it back at every load; None where not all of them are shown."""
    file, path = site.file, site.path
    loads = [load for load in own_sites(file, "torch.load") if path is not None and load.path == path]
    saves = [save for save in own_sites(file, "torch.save") if save.path == path]
    if not loads or len(saves) > 1 or len(part.keys) != 1:
        return None
    if is_literal(path) and path is not None and sites_elsewhere(file, "torch.load", path) != []:
        return None
    edits: list[Edit] = [ReplaceExpression(file.source.span(part.value), f"vars({file.source.code(part.value)})")]
    namespace, needed = _namespace(file)
    for load in loads:
        reads = _reads(load, part.keys[0])
        if reads is None:
            return None
        edits += [ReplaceExpression(file.source.span(read), f"{namespace}(**{file.source.code(read)})") for read in reads]
    return [*edits, *needed]


def _reads(load: Site, key: object) -> list[ast.Subscript] | None:
    """The reads of one key of a loaded dictionary; None when the dictionary goes elsewhere."""
    file, statement = load.file, load.file.parent(load.call)
    if isinstance(statement, ast.Subscript):
        uses: list[ast.expr] = [load.call]
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        target = statement.targets[0]
        uses = [n for n in file.kinds.reads(target.id) if target in file.flow.reaching(n)]
    else:
        return None
    parts = [file.parent(use) for use in uses if not _is_of_another_key(file, use, key)]
    reads = [part for part in parts if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and part.slice.value == key]
    return reads if len(reads) == len(parts) and not any(isinstance(read.ctx, ast.Store) for read in reads) else None


def _is_of_another_key(file: FileModel, use: ast.expr, key: object) -> bool:
    """`checkpoint["epoch"]`, `checkpoint.get("epoch")`, `"args" in checkpoint`: what is changed doesn't touch it."""
    parent = file.parent(use)
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.slice, ast.Constant) and parent.slice.value != key
    if isinstance(parent, ast.Attribute) and parent.attr in {"get", "keys"}:
        call = file.parent(parent)
        return isinstance(call, ast.Call) and not any(isinstance(a, ast.Constant) and a.value == key for a in call.args)
    return isinstance(parent, ast.Compare)


def _namespace(file: FileModel) -> tuple[str, list[Edit]]:
    """How the file can name `argparse.Namespace`, and the import that it needs for that."""
    for name, bindings in file.index.scopes[file.tree].bindings.items():
        targets = {file.names.import_target(binding) for binding in bindings}
        if targets == {"argparse"}:
            return f"{name}.Namespace", []
        if targets == {"argparse.Namespace"}:
            return name, []
    return "argparse.Namespace", [NeedImport("argparse")]
