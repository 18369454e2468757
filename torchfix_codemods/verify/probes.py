"""What harnesses measure: memory kept for backward, graphs, modes, random numbers, checkpoints."""

from __future__ import annotations

import contextlib
import pickle
from typing import TYPE_CHECKING, Any

import torch
import torch.serialization

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from torch import Tensor, nn


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


def peak_memory(device: str) -> int:
    """The most bytes that tensors took on a GPU so far; 0 on a CPU."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else 0
