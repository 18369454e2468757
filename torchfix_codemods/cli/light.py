"""`check` on the light path: argparse, and no library beyond the standard one."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from .check import check
from .files import guarded
from .options import Option, Settings, UsageError, options_of, settings


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def run_check(arguments: list[str]) -> int:
    """Parse the options of `check` and run it."""
    return guarded(lambda: check(_parsed(arguments)))


def parser() -> argparse.ArgumentParser:
    """The options of the table, as argparse knows them."""
    made = _Parser(prog=f"{_program()} check", add_help=False, allow_abbrev=False)
    for option in options_of("check"):
        _add(made, option)
    made.add_argument("paths", nargs="*")
    return made


def _parsed(arguments: list[str]) -> Settings:
    values = vars(parser().parse_intermixed_args(arguments))
    return settings(values, values.pop("paths"))


def _add(made: argparse.ArgumentParser, option: Option) -> None:
    if option.takes == "flag":
        made.add_argument(*option.flags, dest=option.name, action="store_true", default=None)
    elif option.takes in {"names", "texts"}:
        made.add_argument(*option.flags, dest=option.name, action="append")
    else:
        made.add_argument(*option.flags, dest=option.name, type=int if option.takes == "number" else str)


def _program() -> str:
    return sys.argv[0].rpartition("/")[2] or "torchfix-codemods"
