"""Make a command import the copy of a project, where its Python would find the original: editable installs and search paths."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .copy import Copy

_QUESTION = """
import json, sys
finders = [module for name, module in list(sys.modules.items()) if name.startswith("__editable__")]
names = [table for module in finders for table in (getattr(module, "MAPPING", {}), getattr(module, "NAMESPACES", {}))]
print(json.dumps({"path": [p for p in sys.path if p], "names": [[n, p] for table in names for n, p in table.items()]}))
"""
"""Asks a Python where it looks for modules; `MAPPING` and `NAMESPACES` are in the finders of editable installs by setuptools."""
_TIMEOUT = 60
"""Seconds that the answer may take."""
_LINKS = ".torchfix/imports"
"""The folder of the copy with links to packages whose folder has another name."""


@dataclass(frozen=True, slots=True)
class Imports:
    """Where a Python finds modules."""

    path: tuple[str, ...] = ()
    """The folders of `sys.path`: those that `.pth` files of editable installs add are among them."""
    names: tuple[tuple[str, str], ...] = ()
    """Names of packages and modules, and the folder or file that an editable install has for each."""


def redirected(env: Mapping[str, str], imports: Iterable[Imports], copy: Copy) -> dict[str, str]:
    """The environment in which the copy is imported: its folders stand in `PYTHONPATH`, which is looked at before all else.

    Where the folder of a package has another name than the package, the copy gets a link by the name.
    """
    own = [_moved(path, copy) for path in _split(env.get("PYTHONPATH", ""))]
    found = [path for answer in imports for path in (*_search_path(answer, copy), *_named(answer, copy))]
    path = os.pathsep.join(dict.fromkeys([*own, *found]))
    programs = os.pathsep.join(_moved(path, copy) for path in _split(env.get("PATH", "")))
    return {**env, "PATH": programs, **({"PYTHONPATH": path} if path else {})}


def _split(path: str) -> list[str]:
    return [part for part in path.split(os.pathsep) if part]


def _moved(path: str, copy: Copy) -> str:
    """A path of the project as one of the copy; others, and relative ones, as they are."""
    return (copy.inside(path) if os.path.isabs(path) else None) or path


def _search_path(imports: Imports, copy: Copy) -> Iterator[str]:
    inside = (copy.inside(path) for path in imports.path)
    yield from (path for path in inside if path is not None)


def _named(imports: Imports, copy: Copy) -> Iterator[str]:
    """The folders of the copy in which the named packages are found."""
    places: dict[str, str] = {}
    for name, path in sorted(imports.names):
        inside = copy.inside(path)
        if inside is None:
            continue
        parts, place = name.split("."), inside.removesuffix(".py")
        if place.endswith("/" + "/".join(parts)):
            yield place.removesuffix("/" + "/".join(parts))
        elif parts[0] in places:
            # Part of a package, with a folder elsewhere: it is looked for inside the package first.
            _link(copy, os.path.join(places[parts[0]], *parts[1:]), inside)
        else:
            yield os.path.join(copy.folder, _LINKS)
            _link(copy, os.path.join(copy.folder, _LINKS, *parts), inside)
        places[name] = inside


def _link(copy: Copy, place: str, inside: str) -> None:
    suffix = ".py" if inside.endswith(".py") else ""
    copy.add_link(os.path.relpath(place + suffix, copy.folder), os.path.relpath(inside, copy.folder))


def ask(python: str, env: Mapping[str, str], folder: str) -> Imports:
    """Where a Python looks for modules; empty when it doesn't answer. The answer is given in `folder`, which should be empty."""
    try:
        result = subprocess.run(
            [python, "-c", _QUESTION], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=True
        )
        answer = json.loads(result.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return Imports()
    pairs = [(name, path) for name, paths in answer["names"] for path in ([paths] if isinstance(paths, str) else paths)]
    return Imports(tuple(answer["path"]), tuple(pairs))


def interpreters(command: str, env: Mapping[str, str], environments: Sequence[str]) -> list[str]:
    """The Pythons that a command may use: those on PATH, that of the script it begins with, and those of environments in the project."""
    path = env.get("PATH")
    found = [shutil.which("python", path=path), shutil.which("python3", path=path), _of_script(command, path)]
    found += [shutil.which(os.path.join(folder, "bin/python")) for folder in environments]
    by_environment = {(os.path.dirname(python), os.path.realpath(python)): python for python in found if python}
    return list(by_environment.values())


def _of_script(command: str, path: str | None) -> str | None:
    """The Python in the first line of the program that a command begins with (`pytest`), or the program if it is one."""
    first = re.search(r"[^\s;&|<>()]+", command)
    program = shutil.which(first.group(), path=path) if first else None
    if program is None:
        return None
    if os.path.basename(program).startswith("python"):
        return program
    try:
        with open(program, "rb") as file:
            line = file.readline(1000)
    except OSError:
        return None
    match = re.match(r"#!\s*(/\S*python\S*)", os.fsdecode(line))
    return match.group(1) if match else None
