"""How large the autograd graphs are, and how many of their nodes are still alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Place

_KEY = "torchfix_watched"
_LIMIT = 200_000
"""Nodes of one graph that are counted: a larger one is told as this large."""


class Watched:
    """Stands in a node's metadata: as long as it lives, so does the node, and with it the graph below."""

    __slots__ = ("_graphs", "_nodes")

    def __init__(self, graphs: Graphs, nodes: int) -> None:
        self._graphs, self._nodes = graphs, nodes
        graphs.alive += nodes

    def __del__(self) -> None:
        self._graphs.alive -= self._nodes


class Graphs:
    """The graphs of a process, by where they were made."""

    def __init__(self) -> None:
        self.alive = 0
        """Nodes that are alive now, of those below a watched one."""
        self.most = 0
        self._sizes: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._counts: dict[tuple[Any, ...], int] = {}

    def watch(self, output: Any, place: Place, label: str) -> None:
        """Count the graphs of the tensors in an output; their size is measured for every event whose number is a power of two."""
        series = (*place, label)
        tensors = (output,) if isinstance(output, torch.Tensor) else _tensors(output)
        nodes = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        new = [node for node in nodes if _KEY not in node.metadata]
        count = self._counts[series] = self._counts.get(series, 0) + 1
        if count & (count - 1) == 0:
            size = _size(new)
            self._sizes[series] = max(size, self._sizes.get(series, (0, 0)))
        for node in new:
            node.metadata[_KEY] = Watched(self, max(1, self._sizes[series][0] // len(new)))
        self.most = max(self.most, self.alive)

    def totals(self) -> object:
        """Nodes and bytes saved for backward of the largest graph of each series; nodes alive, now and at most."""
        return {"sizes": [[*series, *size] for series, size in self._sizes.items()], "alive": self.alive, "most": self.most}

    def clear(self) -> None:
        """Forget all; a forked child starts with what its parent had alive."""
        self.most = self.alive
        self._sizes.clear()
        self._counts.clear()


GRAPHS = Graphs()


def _tensors(value: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part, depth - 1)
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part, depth - 1)


def _size(roots: list[Any]) -> tuple[int, int]:
    """Nodes below some roots, down to those that are watched already, and the bytes of the tensors that they have saved."""
    seen: set[Any] = set()
    storages: dict[int, int] = {}
    waiting = list(roots)
    while waiting and len(seen) < _LIMIT:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        storages.update(_saved(node))
        waiting += [following for following, _ in node.next_functions if following is not None and not _is_watched(following)]
    return len(seen), sum(storages.values())


def _is_watched(node: Any) -> bool:
    return _KEY in getattr(node, "metadata", ())


_NAMES: dict[type, tuple[str, ...]] = {}


def _saved(node: Any) -> Iterator[tuple[int, int]]:
    """Address and bytes of each storage that a node keeps; a parameter is kept anyway, and counts for nothing."""
    kind = type(node)
    if kind not in _NAMES:
        _NAMES[kind] = tuple(name for name in dir(kind) if name.startswith("_saved_")) or ("saved_tensors",)
    for name in _NAMES[kind]:
        try:
            kept = [tensor for tensor in _tensors(getattr(node, name, None)) if not tensor.is_leaf or not tensor.requires_grad]
            storages = [tensor.untyped_storage() for tensor in kept]
            yield from [(storage.data_ptr(), storage.nbytes()) for storage in storages]
        except RuntimeError:  # freed already, changed in place, or without storage (a tensor of torch.func)
            continue
