"""What is saved and loaded: the kind of object, and whether another machine could load it."""

from __future__ import annotations

import functools
import io
import os
from typing import TYPE_CHECKING, Any

import torch

from .places import ROOT, caller
from .values import digest_of

if TYPE_CHECKING:
    from .writer import Writer

_TRIED = 8
"""Saves of one place whose file is loaded again to see whether that works."""
_SIZE_LIMIT = 500_000_000
"""Bytes; a larger file isn't loaded again."""


class Files:
    """Stands in for `torch.save` and `torch.load`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._load = torch.load

    def saved(self, value: Any, target: Any) -> None:
        """Note what was saved, and for the first few files of a place, how they load."""
        place = caller()
        number, written = self._writer.number(("save", place.file, place.function))
        if written:
            loads, devices = self._loads(target) if number <= _TRIED else ("", [])
            self._writer.row(
                "save", place=place.line_only, label=_name(target), number=number, kind=kind_of(value), loads=loads, devices=devices, digest=digest_of(_tensors(value))
            )  # fmt: skip

    def loaded(self, value: Any, source: Any, keywords: dict[str, Any]) -> None:
        """Note what was loaded, and how."""
        self._note_load(kind_of(value), source, keywords)

    def failed(self, error: Exception, source: Any, keywords: dict[str, Any]) -> None:
        """Note what could not be loaded."""
        self._note_load(f"{type(error).__name__}", source, keywords)

    def _note_load(self, kind: str, source: Any, keywords: dict[str, Any]) -> None:
        place = caller()
        number, written = self._writer.number(("load", place.file, place.function))
        if written:
            options = {name: _option(keywords[name]) for name in ("map_location", "weights_only") if keywords.get(name) is not None}
            self._writer.row("load", place=place.line_only, label=_name(source), number=number, kind=kind, **options)

    def _loads(self, target: Any) -> tuple[str, list[str]]:
        """`yes`, or what a machine without a GPU raises that loads the weights alone; and the devices of the tensors in the file."""
        readable = _readable(target)
        if readable is None:
            return "", []
        devices: set[str] = set()

        def keep(storage: Any, location: str) -> Any:
            devices.add(str(location))
            return storage

        try:
            self._load(readable, map_location=keep, weights_only=True)
        except Exception as error:  # noqa: BLE001  # whatever a file holds: the reason is the result
            return type(error).__name__, sorted(devices)
        return "yes", sorted(devices)


def kind_of(value: Any) -> str:
    """What kind of object this is, as people say it."""
    if isinstance(value, torch.nn.Module):
        return f"module {type(value).__name__}"
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, dict):
        kinds = sorted({kind_of(part) for part in value.values()})
        if kinds == ["tensor"]:
            return "state dict of a wrapper" if all(str(name).startswith("module.") for name in value) else "state dict"
        return f"dict of {', '.join(kinds)}"
    return type(value).__name__


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of a model, or in nested dicts."""
    if isinstance(value, torch.nn.Module):
        value = value.state_dict()
    if isinstance(value, dict):
        return [tensor for part in value.values() for tensor in _tensors(part)]
    return [value] if isinstance(value, torch.Tensor) else []


def _readable(target: Any) -> Any:
    if isinstance(target, io.BytesIO):
        return io.BytesIO(target.getvalue())
    path = target if isinstance(target, (str, os.PathLike)) else getattr(target, "name", None)
    if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path) or os.path.getsize(path) > _SIZE_LIMIT:
        return None
    if hasattr(target, "flush"):
        target.flush()
    return path


def _name(target: Any) -> str:
    path = target if isinstance(target, (str, os.PathLike)) else getattr(target, "name", "")
    if not isinstance(path, (str, os.PathLike)) or not path:
        return type(target).__name__
    full = os.path.realpath(path)
    return full[len(ROOT) :] if full.startswith(ROOT) else os.path.basename(full)


def _option(value: Any) -> str:
    return getattr(value, "__name__", None) or str(value)


def install(writer: Writer) -> None:
    """Wrap both functions."""
    recorder, save, load = Files(writer), torch.save, torch.load
    saved, loaded, failed = writer.guarded(recorder.saved), writer.guarded(recorder.loaded), writer.guarded(recorder.failed)

    @functools.wraps(save)
    def recorded_save(obj: Any, f: Any, *arguments: Any, **keywords: Any) -> Any:
        result = save(obj, f, *arguments, **keywords)
        saved(obj, f)
        return result

    @functools.wraps(load)
    def recorded_load(f: Any, map_location: Any = None, *arguments: Any, **keywords: Any) -> Any:
        options = {"map_location": map_location, **keywords}
        try:
            result = load(f, map_location, *arguments, **keywords)
        except Exception as error:
            failed(error, f, options)
            raise
        loaded(result, f, options)
        return result

    torch.save, torch.load = recorded_save, recorded_load
