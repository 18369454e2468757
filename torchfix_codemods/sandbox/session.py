"""Trials of a project: run commands in a private copy of it, each time with other changes."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .command import Limits, Outcome, run
from .copy import Copy, remove
from .environment import environment
from .imports import ask, interpreters, redirected
from .project import Entry, Kind, NotCopied, entries, is_environment, top
from .signals import deferred, interrupting
from .sizes import check_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Environ = Callable[[Mapping[str, str]], Mapping[str, str]]

COPY_LIMIT = 2_000_000_000
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Options:
    """How trials are made."""

    limits: Limits = field(default_factory=Limits)
    env: tuple[str, ...] = ()
    """More environment variables that the commands see: `NAME` or `NAME=VALUE`."""
    links: tuple[str, ...] = ()
    """Files and folders that are linked in place of being copied; what commands write there is written to the original."""
    copy_limit: int = COPY_LIMIT
    """Bytes that the copy may take."""


class Sandbox:
    """A private copy of the project at `top`, always at the same path, and what commands in it see."""

    def __init__(self, copy: Copy, env: Mapping[str, str], environments: Sequence[str], cwd: str, limits: Limits) -> None:
        self.top = copy.top
        self._copy, self._env, self._environments, self._cwd, self._limits = copy, env, environments, cwd, limits
        self._temporary = os.path.join(os.path.dirname(copy.folder), "tmp")
        self._environs: dict[str, dict[str, str]] = {}

    @property
    def folder(self) -> str:
        """The copy of the top."""
        return self._copy.folder

    def trial(self, command: str, replacements: Mapping[str, bytes], environ: Environ = dict) -> Outcome:
        """Run a command in the pristine copy, but for files whose content is given by path below the top.

        `environ` makes the variables of this run out of those that all get. Raises `NotCopied`.
        """
        try:
            self._empty_temporary_folder()
            env = self._environ(command)
            self._copy.reset(replacements)
            return run(self._inside(command), self._cwd, environ(env), self._limits)
        except OSError as error:
            raise NotCopied(f"the private copy in {self._copy.folder} can't be used: {error}") from None

    def _empty_temporary_folder(self) -> None:
        remove(self._temporary)
        os.mkdir(self._temporary)

    def _environ(self, command: str) -> dict[str, str]:
        """The variables for a command; the Pythons that it may use are asked once."""
        if command not in self._environs:
            base = {"TMPDIR": self._temporary, **self._env}
            answers = [ask(python, base, self._temporary) for python in interpreters(command, base, self._environments)]
            self._environs[command] = redirected(base, answers, self._copy)
        return self._environs[command]

    def _inside(self, command: str) -> str:
        """The command, with the folder of the copy where it names the folder of the project."""
        name = re.compile(rf"(?<![\w./-]){re.escape(self.top)}(?![\w.-])")
        return name.sub(lambda _: self._copy.folder, command)


@contextmanager
def opened(paths: Sequence[str], options: Options) -> Iterator[Sandbox]:
    """Trials of the project around some paths; commands run where the current folder is in it, else at its top.

    The copy is made with the first trial, and removed at the end, also when a signal ends the run (as `KeyboardInterrupt`).
    Raises `NotCopied` for what can't be copied, and `ValueError` for a mistake in `options.env`.
    """
    current = os.getcwd()
    env = environment(os.environ, options.env)
    if not any(text.partition("=")[0] == "TMPDIR" for text in options.env):
        env.pop("TMPDIR", None)
    # The name is chosen first: whenever an interrupt comes, it is known what is to be removed.
    base = os.path.join(os.path.realpath(tempfile.gettempdir()), f"torchfix-{secrets.token_hex(6)}")
    with interrupting():
        try:
            try:
                os.mkdir(base, 0o700)
                yield _sandbox(top(paths, current), base, env, current, options)
            finally:
                _remove(base)
        finally:
            # Once more: an interrupt may have come just before the signals were deferred.
            _remove(base)


def _remove(base: str) -> None:
    with deferred():
        remove(base)


def _sandbox(project: str, base: str, env: Mapping[str, str], current: str, options: Options) -> Sandbox:
    found = _entries(project, base, options.links)
    check_size(project, found, options.copy_limit, base)
    copy = Copy(project, os.path.join(base, os.path.basename(project)), found)
    environments = [entry.target for entry in found if entry.kind is Kind.LINK and is_environment(entry.target)]
    return Sandbox(copy, env, environments, copy.inside(current) or copy.folder, options.limits)


def _entries(project: str, base: str, links: Sequence[str]) -> list[Entry]:
    if os.path.dirname(project) == project:
        raise NotCopied(f"the paths have no project in common: their common folder is {project}")
    linked = [os.path.realpath(link) for link in links]
    missing = [link for link, path in zip(links, linked, strict=True) if not os.path.exists(path)]
    if missing:
        raise NotCopied(f"--link {missing[0]}: no such file or folder")
    return list(entries(project, linked, base))
