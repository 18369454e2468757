"""A CPU that stands in for a GPU: what harnesses do on CUDA alone is executed on machines without one too.

It shows that a harness runs there and that what it promises is possible: tensors that lie apart can't be combined, and the
memory that is held at once is counted, and checkpoints say where they were written. It can't show what only a GPU does:
pinned memory, a cache that is reserved, other sums.
"""

from __future__ import annotations

import weakref
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

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
    with mock.patch.multiple(torch.cuda, **functions), Apart() as apart:
        torch.serialization.register_package(0, apart.saved_from, apart.loaded_to)
        return seen(request)


class Apart(TorchFunctionMode):
    """Whatever is made on CUDA or moved there is on the CPU, but marked; what is marked and what isn't don't go together."""

    def __init__(self):
        super().__init__()
        self.marked = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        there = [self.is_there(tensor) for tensor in tensors]
        if getattr(function, "__self__", None) in _PLACES:
            return _PLACES[function.__self__](function(*args), any(there))
        if function is torch.device or name == "_parse_to":  # what only speaks of a device stays as it is
            return function(*args, **kwargs)
        if name in {"to", "cuda", "cpu"}:
            return self._moved(function, args, kwargs)
        _refuse(name, tensors, there)
        plain_args, plain_kwargs = tree_map(_on_cpu, (args, kwargs))
        result = function(*plain_args, **plain_kwargs)
        asked = any(_is_cuda(value) for value in tree_leaves((args, kwargs)))
        in_place = name.endswith("_") and not name.endswith("__")
        source = there[-1:] if name == "__set__" else there[:1] if in_place else there
        if asked or any(source):
            self._mark((result, args[:1] if name == "__set__" else ()))
        return result

    def _moved(self, function, args, kwargs):
        """The result of `to`, `cuda` or `cpu`: another tensor when it goes to where it isn't."""
        tensor, name = args[0], function.__name__
        asked = [value for value in tree_leaves((args[1:], kwargs)) if isinstance(value, (torch.device, str))]
        was = self.is_there(tensor)
        goes = name == "cuda" or (name == "to" and (any(map(_is_cuda, asked)) or (not asked and was)))
        goes = goes or any(isinstance(value, torch.Tensor) and self.is_there(value) for value in args[1:])
        arguments, named = tree_map(_on_cpu, (args, kwargs))
        result = tensor if name in {"cuda", "cpu"} else torch.Tensor.to(*arguments, **named)
        if goes != was and result is tensor:
            result = tensor.clone()
        if goes:
            self._mark(result)
        return result

    def is_there(self, tensor):
        return tensor.untyped_storage()._cdata in self.marked

    def _mark(self, values):
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor):
                self._mark_storage(value.untyped_storage())

    def _mark_storage(self, storage):
        if storage._cdata not in self.marked:
            self.marked.add(storage._cdata)
            weakref.finalize(storage, self.marked.discard, storage._cdata)

    def saved_from(self, storage):
        """What a checkpoint says of a storage."""
        return "cuda:0" if storage._cdata in self.marked else None

    def loaded_to(self, storage, location):
        """A storage of a checkpoint, where it was or where `map_location` says."""
        if not location.startswith("cuda"):
            return None
        self._mark_storage(storage)
        return storage


_PLACES = {
    torch.Tensor.device: lambda real, there: torch.device("cuda", 0) if there else real,
    torch.Tensor.is_cuda: lambda real, there: there or real,
}
# These take tensors from both sides, or only look at them.
_MIXES = {"copy_", "__set__", "__getitem__", "__setitem__", "_has_compatible_shallow_copy_type", "is_same_size", "type_as"}


def _refuse(name, tensors, there):
    """What torch says when a tensor is where it can't be used."""
    if name in {"numpy", "__array__"} and any(there):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")
    apart = [tensor for tensor, marked in zip(tensors, there, strict=True) if not marked and tensor.dim()]
    if any(there) and apart and name not in _MIXES:
        raise RuntimeError(f"Expected all tensors to be on the same device ({name})")


def _is_cuda(value):
    return (isinstance(value, torch.device) and value.type == "cuda") or (type(value) is str and value in {"cuda", "cuda:0"})


def _on_cpu(value):
    return torch.device("cpu") if _is_cuda(value) else value


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
