"""`verify`: proof of rules by execution."""

from __future__ import annotations

import contextlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..catalogue import all_rules, find
from ..rule import Safety
from ..workspace.run import Failure
from ..workspace.surroundings import Surroundings
from ..workspace.tasks import CheckTask, RewriteTask
from .options import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..rule import Rule

DEVICES = ("cpu", "cuda", "all")


def prove(
    names: list[str], device: str, fixtures: str | None, python: str | None = None, record: str | None = None, foreign: Sequence[str] = ()
) -> int:
    """Run the contracts of rules; 1 when one is broken. Raises `UsageError` and `UnknownRule`.

    `foreign` are the flags that were given and are for `--script` only.
    """
    if foreign:
        raise UsageError(f"{foreign[0]} needs a program of yours to run: --script 'python train.py'")
    if device not in DEVICES:
        raise UsageError(f"--device takes {', '.join(DEVICES)}, not {device!r}")
    rules = [find(all_rules(), name) for name in names] or list(all_rules())
    missing = [name for name in ("tomli",) * (sys.version_info < (3, 11)) + ("torch",) * (not python) if not find_spec(name)]
    if missing:
        raise UsageError(f"verify executes torch code, and {missing[0]} isn't installed: pip install 'torchfix-codemods[verify]'")
    folder = Path(fixtures) if fixtures else _default_fixtures()
    if not folder.is_dir():
        raise UsageError(f"no fixtures at {folder}: run verify in a checkout of the project, or name the folder with --fixtures")
    from ..verify.command import Tool, run
    from ..verify.interpreter import Interpreter, InterpreterError

    try:
        with contextlib.closing(Interpreter(python or sys.executable)) as interpreter:
            return run(rules, device, folder, Tool(rewritten, found), interpreter, Path(record) if record else None)
    except InterpreterError as error:
        raise UsageError(str(error)) from error


def rewritten(rule: Rule, path: Path, unsafe: bool) -> bytes:
    """What one rule makes of a file."""
    task = RewriteTask(lambda: (rule,), Safety.UNSAFE if unsafe else Safety.SAFE, project_of(path))
    result = task.text(str(path), path.read_bytes())
    return b"" if isinstance(result, Failure) else result.after


def found(rule: Rule, path: Path) -> list[tuple[int, str, bool]]:
    """Line, message, and whether a fix is offered, of each finding of one rule in a file."""
    result = CheckTask(lambda: (rule,), project_of(path)).text(str(path), path.read_bytes())
    findings = [] if isinstance(result, Failure) else [located.finding for located in result.findings]
    return [(finding.position.line, finding.message, bool(finding.edits)) for finding in findings]


def project_of(path: Path) -> Surroundings:
    """The folder of a case as a project of its own: the other files in it, but for the other side."""
    others = [name for name in ("before.py", "after.py") if name != path.name]
    return Surroundings((str(path.parent),), isolated=True, hidden=tuple(str(path.with_name(name)) for name in others))


def _default_fixtures() -> Path:
    """`fixtures/` of the current folder, or of the checkout that the package was installed from."""
    here = Path("fixtures")
    return here if here.is_dir() else Path(__file__).resolve().parents[2] / "fixtures"
