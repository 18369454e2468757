"""The options of the commands that work on files: one table for the light parser and for typer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its field in `Settings`, its flags, what it takes, and its help."""

    name: str
    flags: tuple[str, ...]
    takes: Literal["names", "flag", "number", "text", "color"]
    help: str


OPTIONS = (
    Option("select", ("--select",), "names", "Rules or categories to use, or ALL (the default); comma separated, repeatable."),
    Option("ignore", ("--ignore",), "names", "Rules or categories to leave out."),
    Option("unsafe_fixes", ("--unsafe-fixes",), "flag", "Also use fixes that change behaviour in the documented, intended way."),
    Option("jobs", ("--jobs", "-j"), "number", "Processes to use; 0 (the default) for as many as there are processors."),
    Option("stdin_filename", ("--stdin-filename",), "text", "The name of the file that is read from stdin with `-`."),
    Option("color", ("--color",), "color", "auto, always or never."),
    Option("quiet", ("--quiet", "-q"), "flag", "Say nothing but what was asked for."),
)
COLORS = ("auto", "always", "never")
PATHS_HELP = "Files and folders; `-` reads stdin. The current folder when none is given."


class UsageError(Exception):
    """A mistake on the command line; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asks for."""

    paths: tuple[str, ...] = (".",)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    jobs: int = 0
    stdin_filename: str = ""
    color: str = "auto"
    quiet: bool = False
    unknown: tuple[str, ...] = field(default=(), repr=False)

    @property
    def reads_stdin(self) -> bool:
        """Whether the text comes from stdin."""
        return "-" in self.paths


def settings(values: dict[str, object], paths: list[str]) -> Settings:
    """Settings from parsed values; raises `UsageError`."""
    given = {name: value for name, value in values.items() if value is not None}
    for option in OPTIONS:
        if option.takes == "names" and option.name in given:
            given[option.name] = _split(given[option.name])  # type: ignore[arg-type]  # lists of texts
    made = Settings(paths=tuple(paths) or (".",), **given)  # type: ignore[arg-type]  # the table names the fields
    if made.color not in COLORS:
        raise UsageError(f"--color takes {', '.join(COLORS)}, not {made.color!r}")
    if made.jobs < 0:
        raise UsageError(f"--jobs takes a number of processes, or 0, not {made.jobs}")
    if made.reads_stdin and len(made.paths) > 1:
        raise UsageError("`-` (stdin) can't be combined with other paths")
    return made


def _split(values: list[str]) -> tuple[str, ...]:
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())
