"""Run the user's own commands on a private copy of their project, under limits. No security boundary."""

from .command import Limits, Outcome, run
from .environment import environment
from .output import Output
from .project import NotCopied
from .session import COPY_LIMIT, Options, Sandbox, opened
from .signals import deferred, interrupting

__all__ = [
    "COPY_LIMIT",
    "Limits",
    "NotCopied",
    "Options",
    "Outcome",
    "Output",
    "Sandbox",
    "deferred",
    "environment",
    "interrupting",
    "opened",
    "run",
]
