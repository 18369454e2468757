"""Run a pure function over many files, in processes; a file that breaks the analysis costs only itself."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CHUNK = 64
"""Files of one task: fewer, and passing tasks around costs more than the work."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that was not analysed, and why; `ours` when the tool is to blame and not the file."""

    path: str
    line: int
    reason: str
    ours: bool = False


def run(task: Callable[[str], Result], paths: Sequence[str], jobs: int) -> Iterator[Result | Failure]:
    """The results in the order of the paths, whatever the number of jobs."""
    chunks = [paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK)]
    if jobs <= 1 or len(chunks) <= 1:
        _prepare()
        for chunk in chunks:
            yield from _chunk(task, chunk)
        return
    yield from _in_processes(task, chunks, jobs)


def default_jobs() -> int:
    """As many as there are processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _in_processes(task: Callable[[str], Result], chunks: Sequence[Sequence[str]], jobs: int) -> Iterator[Result | Failure]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(min(jobs, len(chunks)), initializer=_prepare) as pool:
        futures = [pool.submit(_chunk, task, chunk) for chunk in chunks]
        for future, chunk in zip(futures, chunks, strict=True):
            try:
                yield from future.result()
            except BrokenProcessPool:
                yield from _one_by_one(task, chunk)


def _one_by_one(task: Callable[[str], Result], chunk: Sequence[str]) -> Iterator[Result | Failure]:
    """A worker died on one of these files: halve until it stands alone."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(1, initializer=_prepare) as pool:
        try:
            results = pool.submit(_chunk, task, chunk).result()
        except BrokenProcessPool:
            results = None
    if results is not None:
        yield from results
    elif len(chunk) == 1:
        yield Failure(chunk[0], 1, "the worker process died on this file; please report it", ours=True)
    else:
        middle = len(chunk) // 2
        yield from _one_by_one(task, chunk[:middle])
        yield from _one_by_one(task, chunk[middle:])


def _prepare() -> None:
    """Trees are dropped one by one, and are no cycles that matter: collecting garbage in between only costs."""
    gc.disable()


def _chunk(task: Callable[[str], Result], paths: Sequence[str]) -> list[Result | Failure]:
    results = [_guarded(task, path) for path in paths]
    gc.collect()
    return results


def _guarded(task: Callable[[str], Result], path: str) -> Result | Failure:
    """The one place where any error of the analysis is caught."""
    try:
        return task(path)
    except RecursionError:
        return Failure(path, 1, "nested too deeply to be analysed", ours=False)
    except MemoryError:
        return Failure(path, 1, "too large to be analysed in the memory there is", ours=False)
    except Exception as error:  # noqa: BLE001  # the border: whatever a file provokes must not cost the others
        return Failure(path, 1, f"internal error, please report it: {type(error).__name__}: {error}", ours=True)
