"""Run one side of a case in a fresh process, forked from this one, which has torch loaded.

Runs under the interpreter that is asked about, which may have nothing of ours but this folder: see `server`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import random
import runpy
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch._dynamo  # the first optimizer of a process loads it, which takes longer than most cases: here, once for all

from .child import in_child

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from .contract import Side


@dataclass(frozen=True, slots=True)
class Request:
    """One execution: which code, under which function of which harness, on which device."""

    case: str
    harness: str
    folder: str
    """What stands in it can be imported."""
    code: str
    device: str
    seed: int
    timeout: float
    """Seconds."""


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


_ENVIRONMENT = {
    "cpu": {"CUDA_VISIBLE_DEVICES": ""},
    # Sums in the same order, and with all digits: both are read when CUDA starts, in the process of the side.
    "cuda": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "NVIDIA_TF32_OVERRIDE": "0"},
}


def observe(request: Request) -> Side:
    """Run a file under the harness of a case, and give what was observed."""
    return in_child(lambda: seen(request), request.timeout)


def seen(request: Request) -> dict[str, object]:
    """What a harness observes, in this process."""
    _prepare(request.device, request.seed)
    sys.path.insert(0, request.folder)
    harness = load_module(Path(request.harness), "harness")
    function = getattr(harness, request.case.replace("-", "_"), None) or harness.observe
    try:
        observed: Mapping[str, object] = function(Program(Path(request.code)), request.device)
    except Exception as error:  # noqa: BLE001  # what the user's code raises is an observation
        return {"raises": type(error).__name__}
    return {"raises": "nothing", **{name: plain(value) for name, value in observed.items()}}


def _prepare(device: str, seed: int) -> None:
    """Make a run repeatable; on the device `cpu` it sees no GPU, whatever the machine has."""
    os.environ.update(_ENVIRONMENT[device])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random.seed(seed)
    warnings.simplefilter("ignore")


def plain(value: object) -> object:
    """A value of numbers, texts and lists alone, so that it can be sent, compared and printed without torch."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else repr(value)


def device_name(device: str, timeout: float) -> str:
    """What the maker calls the device; empty where there is none. Asked in a child: a process that has used CUDA can't be forked."""
    if device == "cpu":
        return "CPU"
    return str(in_child(_name_of_the_gpu, timeout).observations.get("name", ""))


def _name_of_the_gpu() -> dict[str, object]:
    return {"name": torch.cuda.get_device_name() if torch.cuda.is_available() else ""}
