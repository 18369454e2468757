"""Fixes in several files that hold only together: all files apply theirs, or none does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .run import Failure
from .snapshot import absolute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..rule import Partners
    from .tasks import RewriteTask, Rewrote


def settled(
    task: RewriteTask, results: Iterable[Rewrote | Failure], may_write: Callable[[str], bool] = lambda _: True
) -> Iterator[Rewrote | Failure]:
    """The results, without the fixes whose partners in other files were not applied in this run, or can't be written.

    Files that have such fixes are done once more without them, until nothing changes.
    """
    done = list(results)
    while True:
        dropped = _unpartnered(done, may_write)
        if not dropped:
            yield from done
            return
        task = replace(task, dropped=task.dropped | dropped)
        done = [task(result.path) if _applies(result, dropped) else result for result in done]


def _unpartnered(results: list[Rewrote | Failure], may_write: Callable[[str], bool]) -> frozenset[str]:
    """The keys of fixes that some file which shares them has not applied."""
    applied: set[tuple[str, str]] = set()
    wanted: set[tuple[str, str]] = set()
    for result in results:
        for partners in _partners(result):
            here = absolute(result.path)
            applied |= {(partners.key, here)} if may_write(result.path) else set()
            wanted |= {(partners.key, path) for path in (here, *partners.paths)}
    return frozenset(key for key, _ in wanted - applied)


def _applies(result: Rewrote | Failure, keys: frozenset[str]) -> bool:
    return any(partners.key in keys for partners in _partners(result))


def _partners(result: Rewrote | Failure) -> list[Partners]:
    fixed = () if isinstance(result, Failure) else result.fixed
    return [finding.partners for finding in fixed if finding.partners is not None]
