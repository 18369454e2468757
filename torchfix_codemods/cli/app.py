"""The full command line, on typer."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from .. import __version__
from . import learn
from .apply import apply
from .check import check
from .diff import diff
from .files import USAGE, guarded
from .options import PATHS_HELP, Option, Settings, options_given, options_of, settings

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
    "texts": list[str] | None,
    "flag": bool | None,
    "size": str | None,
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
    parameters = [paths, *map(_parameter, options_of(function.__name__))]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {p.name: p.annotation for p in parameters}
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


def _verify(
    names: Annotated[
        list[str] | None, typer.Argument(help="Rules to prove, all when none is given; with --script, files and folders to fix.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or all (the default).", show_default=False)] = None,
    fixtures: Annotated[str | None, typer.Option(help="The folder of the fixtures; ./fixtures when not given.")] = None,
    python: Annotated[str | None, typer.Option(help="Another Python (3.10 or newer, with torch and numpy) to execute with.")] = None,
    record: Annotated[str | None, typer.Option(help="A JSON file that keeps the outcome, with date, device and versions.")] = None,
    **values: object,
) -> None:
    """Execute code before and after the fixes, and compare: the fixtures of rules, or with --script your own program."""
    own = {"--device": device, "--fixtures": fixtures, "--python": python, "--record": record}
    if values["script"] is not None:
        from .script import verify_script

        _finish(lambda: verify_script(settings(values, names or []), [flag for flag, value in own.items() if value is not None]))
    from .prove import prove

    _finish(lambda: prove(names or [], device or "all", fixtures, python, record, options_given("verify", values)))


def _with_table(function: Callable[..., None], name: str) -> None:
    """Make a command of a function that has options of its own, and takes those of the table as further keywords."""
    hints = get_type_hints(function, include_extras=True)
    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(function).parameters.values() if p.name != "values"]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + list(map(_parameter, options_of(name)))
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    app.command(name)(function)


_with_table(_verify, "verify")


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _main(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False) -> None:
    """Find PyTorch code that departs from the documented patterns, rewrite it, and prove each rewrite by execution."""
