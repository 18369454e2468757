"""Where in the user's code something is called from."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import CodeType, FrameType

ROOT = os.path.join(os.path.realpath(os.environ.get("TORCHFIX_ROOT", os.getcwd())), "")
"""The folder of the user's code; what lies in an installed package below it isn't theirs."""
_FOREIGN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Place(NamedTuple):
    """A line of the user's code; empty where nothing of it is running."""

    file: str = ""
    """Relative to the root."""
    function: str = ""
    line: int = 0
    within: tuple[str, ...] = ()
    """All functions of the user that are running, the outermost first, as `file:function`."""

    @property
    def line_only(self) -> tuple[str, str, int]:
        """File, function and line."""
        return self[:3]


_NOWHERE = Place()
_files: dict[str, str] = {}
_functions: dict[int, tuple[CodeType, tuple[str, str] | None]] = {}
"""By identity: the hash of code is that of all it holds. The code is kept, so that its identity stays its own."""


def user_file(code: CodeType) -> str:
    """The relative path of the user's file that some code stands in; empty for all other code."""
    name = code.co_filename
    found = _files.get(name)
    if found is None:
        path = os.path.realpath(name)
        mine = path.startswith(ROOT) and not name.startswith("<") and not any(part in path for part in _FOREIGN)
        found = _files[name] = path[len(ROOT) :].replace(os.sep, "/") if mine else ""
    return found


def caller() -> Place:
    """The innermost line of the user's code that is running.

    Called for every forward, and calls nothing for code that it knows: the trace function makes each call cost twice.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # there is no public way that is fast
    innermost, within = None, []
    while frame is not None:
        code = frame.f_code
        known = _functions.get(id(code)) or _learn(code)
        function = known[1]
        if function:
            innermost = innermost or (*function, frame.f_lineno)
            within.append(":".join(function))
        frame = frame.f_back
    return tuple.__new__(Place, (*innermost, tuple(within[::-1]))) if innermost else _NOWHERE


def _learn(code: CodeType) -> tuple[CodeType, tuple[str, str] | None]:
    file = user_file(code)
    found = _functions[id(code)] = (code, (file, function_name(code)) if file else None)
    return found


def function_name(code: CodeType) -> str:
    """The qualified name of a function, where this Python knows it."""
    return getattr(code, "co_qualname", code.co_name)
