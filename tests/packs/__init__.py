"""Rule packs for tests, each laid out as it would be installed."""

from __future__ import annotations

import os
from pathlib import Path

WRONG_RULES = Path(__file__).with_name("wrong_rules") / "site-packages"
"""Put it on PYTHONPATH, and the rules `drop-optimizer-step` and `return-early` are there, which break the code that they change."""


def with_pack(pack):
    """The environment variables with which a pack is found."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(pack), os.environ.get("PYTHONPATH", "")]))}
