"""A CPU that stands in for a GPU: what harnesses do on CUDA alone is executed on machines without one too.

It shows that a harness runs there and that what it promises is possible. It can't show what only a GPU does: tensors
that lie apart, pinned memory, a cache that is reserved.
"""

from __future__ import annotations

import weakref
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only

from torchfix_codemods.verify.child import in_child
from torchfix_codemods.verify.execute import Request, seen


def observe(case, code):
    """One side of a case, as `verify --device cuda` runs it."""
    request = Request(case.name, str(case.harness), str(case.before.parent), str(code), "cuda", case.contract.seed, 60.0)
    return in_child(lambda: _on_the_stand_in(request), request.timeout)


def _on_the_stand_in(request):
    memory = Memory()
    functions = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: "a stand-in",
        "synchronize": lambda *_, **__: None,
        "manual_seed_all": lambda _: None,
        "manual_seed": lambda _: None,
        "memory_allocated": lambda *_: 0,
        "memory_reserved": lambda *_: 0,
        "reset_peak_memory_stats": memory.start,
        "max_memory_allocated": memory.stop,
    }
    with mock.patch.multiple(torch.cuda, **functions), Redirected():
        return seen(request)


class Redirected(TorchFunctionMode):
    """Whatever is to be made on CUDA, or moved there, is on the CPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.cuda:
            return args[0]
        args, kwargs = tree_map(_on_cpu, (args, kwargs or {}))
        return function(*args, **kwargs)


def _on_cpu(value):
    is_cuda = (isinstance(value, torch.device) and value.type == "cuda") or (type(value) is str and value in {"cuda", "cuda:0"})
    return torch.device("cpu") if is_cuda else value


class Memory(TorchDispatchMode):
    """Adds up the bytes of all tensors that are made and not freed yet, and keeps the most there were."""

    def __init__(self):
        super().__init__()
        self.known, self.now, self.most = set(), 0, 0

    def start(self, *_):
        self.__enter__()

    def stop(self, *_):
        self.__exit__(None, None, None)
        return self.most

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, self._made, result)
        return result

    def _made(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.known:
            self.known.add(key)
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self._freed, key, storage.nbytes())

    def _freed(self, key, size):
        self.known.discard(key)
        self.now -= size
