"""Run both sides of a case, and judge what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..measured import NOT_VERIFIED
from .contract import judge
from .interpreter import present
from .specifier import allows

if TYPE_CHECKING:
    from pathlib import Path

    from .case import Case
    from .contract import Verdict
    from .interpreter import Interpreter

NEEDS_TORCH = "needs torch"


def obstacle(case: Case, device: str, python: Interpreter) -> str:
    """Why a case can't be executed there; empty when it can."""
    assert case.contract is not None
    if not allows(case.contract.torch, python.versions.torch):
        return f"{NEEDS_TORCH} {case.contract.torch}"
    return "" if python.device_name(device) else NOT_VERIFIED


def execute(
    case: Case, device: str, before: Path | None = None, after: Path | None = None, python: Interpreter | None = None
) -> list[Verdict]:
    """Run both sides of a case (or other files in their place) and judge them."""
    assert case.contract is not None
    assert case.after is not None
    runner = python or present()
    sides = [runner.observe(case, code, device) for code in (before or case.before, after or case.after)]
    return judge(case.contract.on(device), *sides)
