"""What the commands that work on files share: choosing rules and files, running, and telling of mistakes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TypeVar

from ..catalogue import Choice, UnknownRule
from ..output.style import use_color
from ..output.text import failure_text
from ..rule import Safety
from ..workspace.discover import MissingPath, discover
from ..workspace.run import Failure, default_jobs, run
from ..workspace.surroundings import Surroundings
from .options import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .options import Settings

CLEAN, FOUND, USAGE, INTERNAL = 0, 1, 2, 3
"""Exit codes: nothing to do, something found, a mistake on the command line, a fault of the tool or of the disk."""

_LONG = 200
"""Files from which a progress bar is worth its place."""

Result = TypeVar("Result")


def guarded(command: Callable[[], int]) -> int:
    """Run a command; mistakes on the command line become a message and exit code 2."""
    try:
        return command()
    except (UsageError, UnknownRule, MissingPath) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE


def rules_of(settings: Settings) -> Choice:
    """The rules that the settings choose; raises `UnknownRule` at once for a name that is none."""
    choice = Choice(settings.select, settings.ignore)
    if settings.select or settings.ignore:
        choice()
    return choice


def minimum_of(settings: Settings) -> Safety:
    """The least safety that a fix must have."""
    return Safety.UNSAFE if settings.unsafe_fixes else Safety.SAFE


def surroundings_of(settings: Settings) -> Surroundings:
    """The projects around the files that the settings name."""
    return Surroundings(tuple(path for path in settings.paths if os.path.isdir(path)))


def over_files(task: Callable[[str], Result], settings: Settings) -> Iterator[Result | Failure]:
    """The results of a task for all files that the settings name, in order, with a progress bar for long work."""
    paths = discover(settings.paths)
    results = run(task, paths, settings.jobs or default_jobs())
    return _with_progress(results, len(paths)) if _shows_progress(settings, paths) else results


def _shows_progress(settings: Settings, paths: Sequence[str]) -> bool:
    return sys.stderr.isatty() and not settings.quiet and len(paths) > _LONG


def _with_progress(results: Iterator[Result], total: int) -> Iterator[Result]:
    from rich.console import Console
    from rich.progress import track

    yield from track(results, "Analysing", total, console=Console(stderr=True), transient=True)


def stdin_text() -> bytes:
    """All of stdin."""
    return sys.stdin.buffer.read()


def stdin_name(settings: Settings) -> str:
    """What to call the text from stdin."""
    return settings.stdin_filename or "<stdin>"


def tell_failures(failures: Sequence[Failure], settings: Settings) -> int:
    """List the files that were not analysed; the exit code that they ask for."""
    color = use_color(settings.color, sys.stderr)
    for failure in failures:
        print(failure_text(failure, color), file=sys.stderr)
    if any(failure.ours for failure in failures):
        return INTERNAL
    return FOUND if failures else CLEAN


def root_of(paths: Sequence[str]) -> str:
    """The folder that paths in a diff are relative to: the top of the git repository, the current folder, or what was named."""
    first = paths[0] if paths else "."
    folder = os.path.realpath(first if os.path.isdir(first) else os.path.dirname(first) or ".")
    import subprocess

    try:
        found = subprocess.run(["git", "-C", folder, "rev-parse", "--show-toplevel"], capture_output=True, check=False)
    except OSError:
        found = None
    if found is not None and found.returncode == 0:
        return os.fsdecode(found.stdout.rstrip(b"\n"))
    here = os.getcwd()
    return here if os.path.commonpath([here, folder]) == here else folder
