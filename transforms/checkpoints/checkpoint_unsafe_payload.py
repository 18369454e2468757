"""Rule `checkpoint-unsafe-payload`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ReplaceExpression
from torchfix_codemods.rule import Category, Rule, Safety

from .payload import NAMESPACE, NUMPY, Part, rejected_parts
from .sites import Site, is_literal, own_sites, sites_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_ADVICE = {
    "optimizer": "save its state_dict()",
    "scheduler": "save its state_dict()",
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
    needles = (b"torch", b"save")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield values of saved dictionaries that a load of weights alone rejects."""
        if b"safe_globals" in file.source.data or b"weights_only=False" in file.source.data:
            return
        for site in own_sites(file, "torch.save"):
            for part in rejected_parts(file, site.call.args[0]) if len(site.call.args) > 1 else ():
                yield self._finding(site, part)

    def _finding(self, site: Site, part: Part) -> Finding:
        file, value = site.file, site.file.source.code(part.value)
        message = f"`{value}` ({part.kind}) doesn't load by default since torch 2.6"
        span = file.source.span(part.value)
        if part.kind == NUMPY:
            return self.finding(file, part.value, f"{message}: save float({value})", ReplaceExpression(span, f"float({value})"))
        edits = _as_dictionary(site, part) if part.kind == NAMESPACE else None
        if edits is not None:
            return self.finding(file, part.value, f"{message}: save vars({value}), and make a Namespace of it where it is loaded", *edits)
        return self.finding(file, part.value, f"{message}: {_ADVICE.get(part.kind, 'save plain values')}")


def _as_dictionary(site: Site, part: Part) -> list[Edit] | None:
    """Save a Namespace as a dictionary, and turn it back at every load; None where not all loads are shown."""
    file, path = site.file, site.path
    loads = [load for load in own_sites(file, "torch.load") if path is not None and load.path == path]
    if not loads or (is_literal(path) and path is not None and sites_elsewhere(file, "torch.load", path) != []):
        return None
    edits: list[Edit] = [ReplaceExpression(file.source.span(part.value), f"vars({file.source.code(part.value)})")]
    namespace = _namespace(file)
    for load in loads:
        reads = _reads(load, part.key)
        if reads is None or namespace is None:
            return None
        edits += [ReplaceExpression(file.source.span(read), f"{namespace}(**{file.source.code(read)})") for read in reads]
    return edits


def _reads(load: Site, key: str) -> list[ast.Subscript] | None:
    """The reads of one key of a loaded dictionary; None when the dictionary goes elsewhere."""
    file, statement = load.file, load.file.parent(load.call)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    target = statement.targets[0]
    uses = [n for n in file.kinds.reads(target.id) if target in file.flow.reaching(n)]
    parts = [file.parent(use) for use in uses]
    if not all(isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) for part in parts):
        return None
    return [part for part in parts if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and part.slice.value == key]


def _namespace(file: FileModel) -> str | None:
    """How the file can name `argparse.Namespace`."""
    for name, bindings in file.index.scopes[file.tree].bindings.items():
        targets = {file.names.import_target(binding) for binding in bindings}
        if targets == {"argparse"}:
            return f"{name}.Namespace"
        if targets == {"argparse.Namespace"}:
            return name
    return None
