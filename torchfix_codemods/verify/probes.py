"""What harnesses measure: memory kept for backward, graphs, modes, random numbers, checkpoints."""

from __future__ import annotations

import contextlib
import pickle
import pickletools
import warnings
import zipfile
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.serialization

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from torch import Tensor, nn

T = TypeVar("T")


class SavedBytes:
    """Counts the bytes that autograd keeps for a backward."""

    def __init__(self) -> None:
        self.total = 0

    def __enter__(self) -> SavedBytes:  # noqa: PYI034  # `typing.Self` is newer than Python 3.10
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)

    def _pack(self, tensor: Tensor) -> Tensor:
        self.total += tensor.nbytes
        return tensor


def graph_nodes(value: object) -> int:
    """How many nodes of autograd's graph a tensor (or all tensors of a list) keeps alive."""
    roots = [value] if isinstance(value, torch.Tensor) else value if isinstance(value, (list, tuple)) else []
    todo = [root.grad_fn for root in roots if isinstance(root, torch.Tensor)]
    seen: set[object] = set()
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [following for following, _ in node.next_functions]
    return len(seen)


class Forwards:
    """Records, for each forward of a module, its mode and whether the output has gradient history."""

    def __init__(self, module: nn.Module) -> None:
        self.training: list[bool] = []
        self.tracked: list[bool] = []
        module.register_forward_hook(self._hook)

    def _hook(self, module: nn.Module, _: object, output: object) -> None:
        self.training.append(module.training)
        self.tracked.append(isinstance(output, torch.Tensor) and output.requires_grad)


def random_position() -> float:
    """The next number of the CPU generator: equal only when the same numbers were drawn before."""
    return float(torch.rand(1).item())


def parameters(module: nn.Module) -> list[Any]:
    """The values of all parameters."""
    return [parameter.detach().cpu().tolist() for parameter in module.parameters()]


def gradients(module: nn.Module) -> list[Any]:
    """The gradients of all parameters; None where there is none."""
    return [None if parameter.grad is None else parameter.grad.cpu().tolist() for parameter in module.parameters()]


def versions(tensors: Iterable[Tensor]) -> int:
    """How many writes autograd has counted."""
    return sum(tensor._version for tensor in tensors)  # noqa: SLF001  # there is no public name


@contextlib.contextmanager
def claiming_cuda() -> Iterator[None]:
    """Whatever is saved inside claims to come from a GPU, on machines without one too.

    `torch.load` then fails, without a map location, exactly as for a checkpoint that was written on a GPU.
    """
    original = torch.serialization.location_tag
    torch.serialization.location_tag = lambda _: "cuda:0"
    try:
        yield
    finally:
        torch.serialization.location_tag = original


def loads_weights_only(path: str | Path) -> bool:
    """Whether a file loads with `weights_only=True`, on the CPU."""
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


def classes_in(path: str | Path) -> list[str]:
    """The classes of modules that a file needs in order to be loaded; none when it holds tensors and plain values alone."""
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        names = [argument for opcode, argument, _ in pickletools.genops(archive.read(name)) if opcode.name == "GLOBAL"]
    plain = ("__builtin__ ", "collections ", "torch ", "torch._utils ", "torch.storage ")
    return sorted({str(name).replace(" ", ".") for name in names if not str(name).startswith(plain)})


@contextlib.contextmanager
def warned() -> Iterator[list[str]]:
    """Gathers the categories of the warnings that are given inside.

    But for one: torch 2.4 and 2.5 warn at each `torch.load` that its default will change, whatever the code is about.
    """
    categories: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield categories
    categories += [warning.category.__name__ for warning in caught if "`torch.load` with `weights_only=False`" not in str(warning.message)]


def peak_memory(function: Callable[[], object]) -> int:
    """The most bytes that a call took on the GPU, beyond those that were taken before it."""
    torch.cuda.reset_peak_memory_stats()
    already = int(torch.cuda.memory_allocated())
    function()
    return int(torch.cuda.max_memory_allocated()) - already


def with_peak_memory(function: Callable[[], T], device: str) -> tuple[T, dict[str, int]]:
    """What a call gives, and on a GPU the observation `peak memory`; elsewhere there is none."""
    results: list[T] = []
    if device != "cuda":
        return function(), {}
    peak = peak_memory(lambda: results.append(function()))
    return results[0], {"peak memory": peak}
