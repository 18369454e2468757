"""Where the checkpoints of a project are saved and loaded: the calls of one path, in this file and in others."""

from __future__ import annotations

from functools import partial
from posixpath import dirname, relpath
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model.project import Reach

from .path_key import path_key

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable

    from torchfix_codemods.model import FileModel

_FILES = 60
"""Files of a project that are searched for the other half of a checkpoint; with more, nothing is certain."""
_OTHER_NAMES = (b"torch as ", b"from torch import")


class Site(NamedTuple):
    """A call of `torch.save` or `torch.load`."""

    file: FileModel
    call: ast.Call

    @property
    def path(self) -> tuple[object, ...] | None:
        """What names the checkpoint; equal for the same one. Between files only literal paths tell."""
        argument = path_argument(self.call, self.file.qualified(self.call.func) == "torch.save")
        return path_key(self.file, argument) if argument is not None else None


def path_argument(call: ast.Call, saves: bool) -> ast.expr | None:
    """The path that a save or load is given."""
    position = 1 if saves else 0
    given = next((k.value for k in call.keywords if k.arg == "f"), None)
    return call.args[position] if len(call.args) > position else given


def is_literal(path: object) -> bool:
    """Whether a path is made of literal text alone, so that it means the same in every file."""
    if not isinstance(path, tuple) or not path:
        return False
    return (
        isinstance(path[1], str) if path[0] == "text" and len(path) == 2 else all(is_literal(part) for part in path[1:])
    )  # ("text", value)


def own_sites(file: FileModel, function: str) -> list[Site]:
    """The calls of `torch.save` or `torch.load` in a file."""
    return [Site(file, call) for call in file.calls(function)]


def sites_elsewhere(file: FileModel, function: str, path: tuple[object, ...]) -> list[Site] | None:
    """The calls in other files of the project that save (or load) the same literal path; None when there are too many to tell."""
    project = file.view.project
    others = [p for p in _calling(file, function) if p != file.view.path] if file.view.path else []
    if len(others) > _FILES:
        return None
    holding = [p for p in others if path in project.table(p, f"literal paths of {function}", partial(_literal_paths, function))]
    models = [project.model(p, Reach.FUNCTIONS) for p in holding]
    return [site for model in models if model for site in own_sites(model, function) if site.path == path]


def _calling(file: FileModel, function: str) -> list[str]:
    """The files of the project that may call a function: by its whole name, or by another that they import it under."""
    files = file.view.project.files
    root = files.root(file.view.path)
    called = set(files.containing(root, function.rpartition(".")[2].encode() + b"("))
    imported = {path for text in _OTHER_NAMES for path in files.containing(root, text)}
    return sorted({*files.containing(root, function.encode()), *(called & imported)})


def _literal_paths(function: str, file: FileModel) -> frozenset[Hashable]:
    return frozenset(site.path for site in own_sites(file, function) if is_literal(site.path))


def is_related(first: FileModel, second: FileModel) -> bool:
    """Whether two files are likely to run in the same folder, where a relative path means the same: one's holds the other's."""
    folders = sorted(dirname(file.view.path) + "/" for file in (first, second))
    return folders[1].startswith(folders[0])


def name_of(file: FileModel, seen_from: FileModel) -> str:
    """How to name a file in a message about another."""
    root = file.view.project.files.root(seen_from.view.path)
    return relpath(file.view.path, root)
