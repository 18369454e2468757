"""Where the console scripts start: `check` is answered without loading typer; all else goes to the full command line."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is wrong, and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """The exit status of a command line."""
    if arguments[:1] == ["check"] and not {"--help", "-h"} & set(arguments):
        from .light import run_check

        return run_check(arguments[1:])
    from .app import run_app

    return run_app(arguments)
