"""What SIGINT and SIGTERM do while something is in the making."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENDING = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__)


@contextmanager
def deferred() -> Iterator[None]:
    """Signals that would end the process wait until the block is done."""
    came: list[int] = []
    try:
        with _handled(lambda number, _: came.append(number)):
            yield
    finally:
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


@contextmanager
def interrupting() -> Iterator[None]:
    """All signals that would end the process raise `KeyboardInterrupt` in the block, as SIGINT does: what is open gets closed."""
    with _handled(_interrupt):
        yield


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def _handled(handler: Callable[[int, object], None]) -> Iterator[None]:
    """A handler for the block, for those signals that are not ignored; only the main thread can set one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    before = {number: old for number, old in before.items() if old not in (signal.SIG_IGN, None)}
    try:
        for number in before:
            signal.signal(number, handler)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
