"""The full command line, on typer."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from . import learn
from .apply import apply
from .check import check
from .diff import diff
from .files import USAGE, guarded
from .options import OPTIONS, PATHS_HELP, Option, Settings, settings

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    help="Find PyTorch code that departs from the documented patterns, rewrite it, and prove each rewrite by execution.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_TYPES: dict[str, Any] = {
    "names": list[str] | None,
    "flag": bool | None,
    "number": int | None,
    "text": str | None,
    "color": str | None,
}
_SUMMARIES: dict[Callable[[Settings], int], str] = {
    check: "List findings: place, rule, message, and whether a fix exists and how safe it is. Writes nothing.",
    diff: "Show what would change, as a diff that `git apply` accepts when piped. Writes nothing.",
    apply: "Fix files in place, and print a summary.",
}


def run_app(arguments: list[str]) -> int:
    """Run a command line; the exit status."""
    try:
        app(arguments, prog_name=_program())
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else USAGE if leaving.code else 0
    return 0


def _finish(command: Callable[[], int]) -> None:
    raise typer.Exit(guarded(command))


def _program() -> str:
    name = Path(sys.argv[0]).name
    return "torchfix-codemods" if name == "__main__.py" else name


def _on_files(function: Callable[[Settings], int]) -> None:
    """Make a command of a function on settings, with the options of the table."""

    def command(paths: list[str], **values: object) -> None:
        _finish(lambda: function(settings(values, paths or [])))

    paths = inspect.Parameter(
        "paths", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[list[str] | None, typer.Argument(help=PATHS_HELP)]
    )
    command.__signature__ = inspect.Signature([paths, *map(_parameter, OPTIONS)])  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {p.name: p.annotation for p in [paths, *map(_parameter, OPTIONS)]}
    app.command(function.__name__, help=_SUMMARIES[function])(command)


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = _TYPES[option.takes]
    annotation = Annotated[kind, typer.Option(*option.flags, help=option.help, show_default=False)]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


for _function in (check, diff, apply):
    _on_files(_function)


@app.command()
def rules() -> None:
    """List the rules."""
    _finish(learn.rules)


@app.command()
def explain(
    rule: Annotated[str, typer.Argument(help="The name of a rule.")],
    script: Annotated[
        bool, typer.Option("--script", help="Print the script that converts what the old code has left, where there is one.")
    ] = False,
) -> None:
    """Say why a rule exists, what it changes, and how safe that is."""
    _finish(lambda: learn.script(rule) if script else learn.explain(rule))


@app.command()
def verify(
    rules: Annotated[list[str] | None, typer.Argument(help="Rules to prove; all when none is given.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or all.")] = "all",
    fixtures: Annotated[str | None, typer.Option(help="The folder of the fixtures; ./fixtures when not given.")] = None,
    python: Annotated[str | None, typer.Option(help="Another Python (3.10 or newer, with torch and numpy) to execute with.")] = None,
    record: Annotated[str | None, typer.Option(help="A JSON file that keeps the outcome, with date, device and versions.")] = None,
) -> None:
    """Execute the fixtures of rules before and after the rewrite, and compare what the contracts promise."""
    from .prove import prove

    _finish(lambda: prove(rules or [], device, fixtures, python, record))


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _main(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False) -> None:
    """Find PyTorch code that departs from the documented patterns, rewrite it, and prove each rewrite by execution."""
