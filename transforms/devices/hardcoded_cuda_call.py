"""Rule `hardcoded-cuda-call`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .placements import edits_for, placements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class HardcodedCudaCall(Rule):
    """`.cuda()`, which fails on every machine without a GPU.

    ## Why
    Model and data have to be on one device; which one there is differs between machines. `.to(device)` with one
    definition of `device` runs on all of them.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(3, 1).cuda()
    x = torch.ones(2, 3).cuda(non_blocking=True)
    ```
    ```python
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    model = nn.Linear(3, 1).to(device)
    x = torch.ones(2, 3).to(device, non_blocking=True)
    ```

    ## Safety
    Unsafe: on a machine without a GPU what raised now runs there; with a GPU nothing changes. All moves of a file go
    through one device (the one that it has, that of `--device`, or a new one), or none does, and one report says why.
    Kept behind any test for a GPU, with one GPU per process, and where a framework places things.

    ## References
    https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code
    """

    name = "hardcoded-cuda-call"
    category = Category.DEVICES
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b".cuda(")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield one finding for all moves of a file."""
        everything = placements(file)
        found = [p for p in everything.found if p.form == "call"]
        if not found or not isinstance(found[0].node, ast.Call):
            return
        first = found[0].node
        also = f", with {len(found) - 1} more in this file" if len(found) > 1 else ""
        if everything.obstacle:
            message = f"`.cuda()` needs a GPU{also}: use `.to(device)` throughout; not changed, since {everything.obstacle}"
            yield self.finding(file, first, message)
        else:
            yield self.finding(file, first, f"`.cuda()` needs a GPU{also}: use `.to(device)`", *(edits_for(file, found) or ()))
