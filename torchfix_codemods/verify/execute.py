"""Run one side of a case in a fresh process, forked from this one, which has torch loaded."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import os
import pickle
import random
import runpy
import selectors
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from typing import TYPE_CHECKING

import torch
import torch._dynamo  # the first optimizer of a process loads it, which takes longer than most cases: here, once for all

from .contract import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import ModuleType

    from .case import Case

TIMEOUT = 60.0
"""Seconds that one side may take."""
_LENGTH = struct.Struct("=Q")
"""Stands before the result that a child sends."""


class Program:
    """The code of one side, for a harness to use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> ModuleType:
        """Import the file as a module of its own."""
        return load_module(self._path, "program")

    def run(self) -> str:
        """Run the file as a script in the current (temporary) folder; what it printed."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            runpy.run_path(str(self._path), run_name="__main__")
        return output.getvalue()


def load_module(path: Path, name: str) -> ModuleType:
    """Import a file under a name; pickles of its classes find it there."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def observe(case: Case, code: Path, device: str, timeout: float = TIMEOUT) -> Side:
    """Run a file under the harness of a case, and give what was observed."""
    seed = case.contract.seed if case.contract else 0
    return in_child(lambda: _observe(case, code, device, seed), timeout)


def _observe(case: Case, code: Path, device: str, seed: int) -> dict[str, object]:
    _prepare(device, seed)
    sys.path.insert(0, str(case.before.parent))
    harness = load_module(case.harness, "harness")
    function = getattr(harness, case.name.replace("-", "_"), None) or harness.observe
    try:
        seen: Mapping[str, object] = function(Program(code), device)
    except Exception as error:  # noqa: BLE001  # what the user's code raises is an observation
        return {"raises": type(error).__name__}
    return {"raises": "nothing", **{name: plain(value) for name, value in seen.items()}}


def _prepare(device: str, seed: int) -> None:
    """Make a run repeatable; on the device `cpu` it sees no GPU, whatever the machine has."""
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random.seed(seed)
    warnings.simplefilter("ignore")


def plain(value: object) -> object:
    """A value of numbers, texts and lists alone, so that it can be compared and printed without torch."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else repr(value)


@functools.cache
def has_cuda() -> bool:
    """Whether this machine has a GPU for torch; asked in a child, since a process that has used CUDA can't be forked."""
    return in_child(lambda: {"cuda": torch.cuda.is_available()}, TIMEOUT).observations.get("cuda") is True


def in_child(function: Callable[[], dict[str, object]], timeout: float) -> Side:
    """Call a function in a forked child, in a new temporary folder; its result, or how it failed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _child(function, folder, writer)
        os.close(writer)
        data, in_time = _read(reader, timeout)
        _end(child)
        _, status = os.waitpid(child, 0)
    if not in_time:
        return Side(failure=f"took more than {timeout:g} seconds")
    return _side(data, os.waitstatus_to_exitcode(status))


def _end(child: int) -> None:
    """Kill what is left of a child: itself when it is late, and the processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _child(function: Callable[[], dict[str, object]], folder: str, writer: int) -> None:
    """The life of a child: it never returns."""
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = pickle.dumps(function())
    except BaseException:  # noqa: BLE001  # told to the parent, whatever it is
        result = pickle.dumps(traceback.format_exc(limit=-3))
    try:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(_LENGTH.pack(len(result)) + result)
    finally:
        os._exit(0)


def _read(reader: int, timeout: float) -> tuple[bytes, bool]:
    """What a child writes, and whether it came in time; less than was announced when the child died."""
    deadline = time.monotonic() + timeout
    data = b""
    with selectors.DefaultSelector() as selector, os.fdopen(reader, "rb", buffering=0) as pipe:
        selector.register(pipe, selectors.EVENT_READ)
        # Waiting for the end of the pipe would be waiting for all processes that the child has started.
        while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return b"", False
            chunk = pipe.read(1 << 20)
            if not chunk:
                return b"", True
            data += chunk
    return data[_LENGTH.size :], True


def _side(data: bytes, status: int) -> Side:
    if not data:
        return Side(failure=f"the process ended with status {status}")
    result = pickle.loads(data)
    return Side(failure=f"the harness failed: {result}") if isinstance(result, str) else Side(result)
