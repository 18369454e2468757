"""Numbers out of tensors, without waiting for a GPU."""

from __future__ import annotations

import hashlib
import random
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def number_of(tensor: torch.Tensor) -> Any:
    """The number in a tensor of one element; on a GPU a copy of it, to be read later."""
    tensor = tensor.detach()
    return tensor.item() if tensor.device.type == "cpu" else tensor.clone()


def norm_of(tensors: Sequence[torch.Tensor]) -> tuple[Any, Any]:
    """The norm of some tensors taken together, and how many of them are zero."""
    if not tensors:
        return 0.0, 0
    norms = _norms(tensors)
    return number_of(torch.linalg.vector_norm(norms)), number_of((norms == 0).sum())


def are_filled(tensors: Sequence[torch.Tensor]) -> list[bool]:
    """Which tensors are not zero all over; waits for the GPU."""
    return (_norms(tensors) != 0).tolist() if tensors else []


def _norms(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    plain = [tensor.detach() for tensor in tensors]
    dense = [tensor.coalesce().values() if tensor.is_sparse else tensor for tensor in plain]
    norms = torch._foreach_norm(dense)  # noqa: SLF001  # what clip_grad_norm_ uses
    return torch.stack([norm.to(dense[0].device, torch.float32) for norm in norms])


def digest_of(tensors: Sequence[torch.Tensor]) -> Any:
    """A number that is equal for tensors that are equal bit by bit, and hardly ever for others."""
    sums = [_sum_of_bits(tensor) * (2 * place + 1) for place, tensor in enumerate(tensors)]
    return number_of(torch.stack([part.to(sums[0].device) for part in sums]).sum()) if sums else 0


def _sum_of_bits(tensor: torch.Tensor) -> torch.Tensor:
    tensor = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
    return tensor.view(_BITS[tensor.element_size()]).sum(dtype=torch.int64)


def random_state() -> str:
    """A digest of the states of all generators that torch, numpy and `random` share with the program."""
    state = hashlib.blake2b(torch.get_rng_state().numpy().tobytes(), digest_size=8)
    state.update(repr(hash(random.getstate()[1])).encode())
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state.update(numpy.random.get_state()[1].tobytes())
    if torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            state.update(torch.cuda.get_rng_state(device).numpy().tobytes())
    return state.hexdigest()


def resident_memory() -> int:
    """Bytes of memory that the process holds now; 0 where the system doesn't tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0
