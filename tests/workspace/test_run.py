"""A file that breaks the analysis costs only itself, whatever the number of processes."""

from __future__ import annotations

import os
import signal

import pytest

from torchfix_codemods.workspace.run import CHUNK, Failure, run


def upper(path):
    return path.upper()


def hostile(path):
    if path == "raises":
        raise RuntimeError("boom")
    if path == "recurses":
        return hostile(path)
    if path == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return path


PATHS = [f"p{number}" for number in range(3 * CHUNK)]


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_results_keep_the_order_of_the_paths(jobs):
    assert list(run(upper, PATHS, jobs)) == [path.upper() for path in PATHS]


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_are_values(jobs):
    paths = [*PATHS[:5], "raises", *PATHS[5:], "recurses"]
    results = list(run(hostile, paths, jobs))
    failures = [result for result in results if isinstance(result, Failure)]
    assert [failure.path for failure in failures] == ["raises", "recurses"]
    assert failures[0].reason == "internal error, please report it: RuntimeError: boom"
    assert [failure.ours for failure in failures] == [True, False]
    assert len(results) == len(paths)


def test_a_worker_that_dies_costs_only_its_file():
    paths = [*PATHS[:70], "dies", *PATHS[70:]]
    results = list(run(hostile, paths, 2))
    failures = [result for result in results if isinstance(result, Failure)]
    assert [failure.path for failure in failures] == ["dies"]
    assert [result for result in results if not isinstance(result, Failure)] == PATHS
