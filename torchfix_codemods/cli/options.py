"""The options of the commands that work on files: one table for the light parser and for typer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its field in `Settings`, its flags, what it takes, its help, and the commands that have it, if not all do."""

    name: str
    flags: tuple[str, ...]
    takes: Literal["names", "texts", "flag", "number", "size", "text", "color"]
    help: str
    commands: tuple[str, ...] = ()


RUNNING = ("apply", "verify")
"""The commands that run a command of the user."""
OPTIONS = (
    Option("select", ("--select",), "names", "Rules or categories to use, or ALL (the default); comma separated, repeatable."),
    Option("ignore", ("--ignore",), "names", "Rules or categories to leave out."),
    Option("unsafe_fixes", ("--unsafe-fixes",), "flag", "Also use fixes that change behaviour in the documented, intended way."),
    Option("jobs", ("--jobs", "-j"), "number", "Processes to use; 0 (the default) for as many as there are processors."),
    Option("stdin_filename", ("--stdin-filename",), "text", "The name of the file that is read from stdin with `-`."),
    Option("color", ("--color",), "color", "auto, always or never."),
    Option("quiet", ("--quiet", "-q"), "flag", "Say nothing but what was asked for."),
    Option("verify_with", ("--verify-with",), "text", "Keep only fixes with which this command passes, such as 'pytest -q'.", ("apply",)),
    Option("script", ("--script",), "text", "A command of yours, such as 'python train.py': compare its behaviour.", ("verify",)),
    Option("html", ("--html",), "text", "Write the behaviour report to this file as a page with plots.", ("verify",)),
    Option("json", ("--json",), "text", "Write the behaviour report to this file as JSON.", ("verify",)),
    Option("allow_red", ("--allow-red",), "flag", "Go on when the command fails without fixes: its exit code then passes.", ("apply",)),
    Option("budget", ("--budget",), "number", "Runs of the command; 60 when not given.", ("apply",)),
    Option("timeout", ("--timeout",), "number", "Seconds that a run may take; 600 when not given.", RUNNING),
    Option("memory_limit", ("--memory-limit",), "size", "Data that each process of a run may have, such as 8G.", RUNNING),
    Option("cpu_limit", ("--cpu-limit",), "number", "Seconds of CPU time that each process of a run may use.", RUNNING),
    Option("env", ("--env",), "texts", "An environment variable for the command, NAME or NAME=VALUE; repeatable.", RUNNING),
    Option("link", ("--link",), "texts", "A path to link in place of copying it for the runs; repeatable.", RUNNING),
    Option("copy_limit", ("--copy-limit",), "size", "What the copy for the runs may take; 2G when not given.", RUNNING),
)
COLORS = ("auto", "always", "never")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?", re.IGNORECASE)
_FACTORS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
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
    verify_with: str = ""
    script: str = ""
    html: str = ""
    json: str = ""
    allow_red: bool = False
    budget: int = 60
    timeout: int = 600
    memory_limit: int | None = None
    cpu_limit: int | None = None
    env: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    copy_limit: int = 2_000_000_000
    unknown: tuple[str, ...] = field(default=(), repr=False)

    @property
    def command(self) -> str:
        """The command of the user that is to be run; empty when none is."""
        return (self.verify_with or self.script).strip()

    @property
    def reads_stdin(self) -> bool:
        """Whether the text comes from stdin."""
        return "-" in self.paths


def options_of(command: str) -> tuple[Option, ...]:
    """The options that a command has."""
    return tuple(option for option in OPTIONS if not option.commands or command in option.commands)


def options_given(command: str, values: Mapping[str, object]) -> list[str]:
    """The flags of the options of a command that have a value."""
    return [option.flags[0] for option in options_of(command) if values.get(option.name) is not None]


def settings(values: dict[str, object], paths: list[str]) -> Settings:
    """Settings from parsed values; raises `UsageError`."""
    given = {option.name: _converted(option, values[option.name]) for option in OPTIONS if values.get(option.name) is not None}
    made = Settings(paths=tuple(paths) or (".",), **given)  # type: ignore[arg-type]  # the table names the fields
    _check(made, given)
    return made


def _converted(option: Option, value: object) -> object:
    match option.takes, value:
        case "names", list():
            return tuple(name.strip() for text in value for name in text.split(",") if name.strip())
        case "texts", list():
            return tuple(value)
        case "size", str():
            return _size(option, value)
    return value


def _size(option: Option, text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option.flags[0]} takes a size such as 500M or 8G, not {text!r}")
    return int(float(match[1]) * _FACTORS[match[2].upper()])


def _check(made: Settings, given: dict[str, object]) -> None:
    if made.color not in COLORS:
        raise UsageError(f"--color takes {', '.join(COLORS)}, not {made.color!r}")
    if made.jobs < 0:
        raise UsageError(f"--jobs takes a number of processes, or 0, not {made.jobs}")
    if made.reads_stdin and len(made.paths) > 1:
        raise UsageError("`-` (stdin) can't be combined with other paths")
    _check_verification(made, given)


def _check_verification(made: Settings, given: dict[str, object]) -> None:
    """The options of `--verify-with` and `--script`."""
    if made.command and made.reads_stdin:
        flag = "--verify-with" if made.verify_with else "--script"
        raise UsageError(f"{flag} needs files; `-` (stdin) is none")
    for option in OPTIONS:
        if not option.commands or option.name not in given:
            continue
        if not made.command:
            raise UsageError(f"{option.flags[0]} needs a command to run: --verify-with 'pytest -q', or --script of `verify`")
        least = 2 if option.name == "budget" else 1
        number = given[option.name]
        if option.takes in {"number", "size"} and isinstance(number, int) and number < least:
            raise UsageError(f"{option.flags[0]} takes at least {least}, not {number}")
