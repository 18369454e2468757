"""Rule `hardcoded-cuda-device`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.rule import Category, Rule, Safety

from .placements import edits_for, placements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding


class HardcodedCudaDevice(Rule):
    """Device that is always a GPU.

    ## Why
    `torch.device("cuda")` makes a program fail on machines without a GPU, at the first tensor that is put there.

    ## Example
    ```python
    import torch

    device = torch.device("cuda:0")
    x = torch.ones(2, device=device)
    ```
    ```python
    import torch

    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x = torch.ones(2, device=device)
    ```

    ## Safety
    Unsafe: on a machine without a GPU what raised now runs. A text stays a text, since code compares and splits it. All
    places of a file are changed, or none. Kept: comparisons, defaults of options, configuration, devices by index, and
    whatever stands behind a test for a GPU.

    ## References
    https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code
    """

    name = "hardcoded-cuda-device"
    category = Category.DEVICES
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b"cuda")
    pattern = re.compile(rb"['\"]cuda(:\d+)?['\"]")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield one finding for all devices of a file that are written out."""
        everything = placements(file)
        found = [p for p in everything.found if p.form != "call"]
        if not found:
            return
        text = file.source.code(found[0].node)
        if everything.obstacle:
            yield self.finding(file, found[0].node, f"{text} needs a GPU: choose the device once; not changed, since {everything.obstacle}")
        else:
            advice = "choose it by torch.cuda.is_available()"
            yield self.finding(file, found[0].node, f"{text} needs a GPU: {advice}", *(edits_for(file, found) or ()))
