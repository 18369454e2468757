"""Executes sides of cases for another process: a line of JSON in for each, a line of JSON out.

Runs under any Python from 3.10 on that has torch. Of this package it needs no more than the files that it imports, and
no library but torch.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Say hello, then answer until the other side closes its end."""
    requests, replies = _own_pipes()
    # Libraries that ask for a GPU while they are imported must not start CUDA: it would be of no use to forked children.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    try:
        import torch

        from . import execute
    except ImportError as error:
        _send(replies, {"error": f"torch can't be imported there ({error})"})
        return
    _send(replies, {"python": platform.python_version(), "torch": str(torch.__version__)})
    answers: dict[str, Callable[[dict[str, Any]], object]] = {
        "observe": lambda values: asdict(execute.observe(execute.Request(**values))),
        "device_name": lambda values: execute.device_name(**values),
    }
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            question = json.loads(line)
            _send(replies, answers[question["ask"]](question["values"]))


def _own_pipes() -> tuple[int, int]:
    """The pipes to the other side, moved to where the code that is executed doesn't read or print."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # as long as the process
    return requests, replies


def _send(replies: int, value: object) -> None:
    data = json.dumps(value).encode() + b"\n"
    while data:
        data = data[os.write(replies, data) :]
