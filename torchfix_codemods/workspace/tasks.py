"""What is done with each file: check it, or rewrite it. Pure but for reading the file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..fingerprint import fingerprints
from ..source import Source, SourceError
from .run import Failure
from .selection import Selection
from .surroundings import Surroundings
from .unparsable import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..engine import Applied
    from ..rule import Finding, Rule, Safety

SIZE_LIMIT = 4_000_000
"""Bytes; larger files are data, and would take minutes and gigabytes."""


@dataclass(frozen=True, slots=True)
class Located:
    """A finding with the text of its line, and what it is recognised by when lines have moved (see `fingerprint`)."""

    finding: Finding
    line: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings of one file."""

    path: str
    findings: tuple[Located, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrote:
    """A file before and after its fixes, as bytes of the file."""

    path: str
    before: bytes
    after: bytes
    fixed: tuple[Finding, ...] = ()
    applied: tuple[Applied, ...] = ()
    """For each that was fixed, what it is known by whatever else is fixed, and when it was applied."""
    remaining: tuple[Located, ...] = ()
    refused: tuple[tuple[Located, str], ...] = ()


@dataclass(frozen=True)
class CheckTask:
    """Find the findings of a file."""

    rules: Callable[[], tuple[Rule, ...]]
    """Gives the rules; asked only for a file that mentions torch, so that a run without one loads none."""
    surroundings: Surroundings = field(default_factory=Surroundings)

    def __call__(self, path: str) -> Checked | Failure:
        """Read and check one file."""
        raw = read(path)
        return raw if isinstance(raw, Failure) else self.text(path, raw)

    def text(self, path: str, raw: bytes) -> Checked | Failure:
        """Check a text as if it stood at `path`."""
        if not _concerns_us(raw):
            return Checked(path)
        from ..engine import check

        active = [rule for rule in self.rules() if rule.may_find(raw)]
        source = _decoded(path, raw)
        if isinstance(source, Failure):
            return source
        try:
            return Checked(path, _located(source, check(source, active, self.surroundings.view(path))))
        except SourceError as error:
            return Failure(path, error.line, explain(source.text, error.line, error.reason))


@dataclass(frozen=True)
class RewriteTask:
    """Apply the fixes of a file, in memory."""

    rules: Callable[[], tuple[Rule, ...]]
    minimum: Safety
    surroundings: Surroundings = field(default_factory=Surroundings)
    dropped: frozenset[str] = frozenset()
    """The keys of fixes that other files share, and have not applied."""
    selection: Selection = field(default_factory=Selection)
    """Which of the fixes may be applied."""

    def __call__(self, path: str) -> Rewrote | Failure:
        """Read and rewrite one file; one that stays as it is comes back without its bytes, which nobody needs."""
        raw = read(path)
        result = raw if isinstance(raw, Failure) else self.text(path, raw)
        unchanged = not isinstance(result, Failure) and result.before == result.after
        return replace(result, before=b"", after=b"") if unchanged and not isinstance(result, Failure) else result

    def text(self, path: str, raw: bytes) -> Rewrote | Failure:
        """Rewrite a text as if it stood at `path`."""
        if not _concerns_us(raw):
            return Rewrote(path, raw, raw)
        from ..engine import Unstable, rewrite

        source = _decoded(path, raw)
        if isinstance(source, Failure):
            return source
        try:
            result = rewrite(source, self.rules(), self.minimum, self.surroundings.view(path), self.dropped, self.selection.of(path))
        except SourceError as error:
            return Failure(path, error.line, explain(source.text, error.line, error.reason))
        except Unstable as error:
            return Failure(path, 1, f"{error}; please report it", ours=True)
        after = source.replace(result.data)
        remaining = _located(after, result.remaining)
        reasons = dict(result.refused)
        refused = tuple((located, reasons[located.finding]) for located in remaining if located.finding in reasons)
        return Rewrote(path, raw, source.encode(result.data), result.fixed, result.applied, remaining, refused)


def read(path: str) -> bytes | Failure:
    """The bytes of a regular file of bearable size."""
    try:
        if not os.path.isfile(path):
            return Failure(path, 1, "not a regular file")
        if os.path.getsize(path) > SIZE_LIMIT:
            return Failure(path, 1, f"larger than {SIZE_LIMIT // 1_000_000} MB")
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        return Failure(path, 1, f"can't be read: {error.strerror}")


def _concerns_us(raw: bytes) -> bool:
    """Whether the file mentions torch: it is parsed then even when no rule can find anything, to tell when that fails."""
    return b"torch" in raw


def _decoded(path: str, raw: bytes) -> Source | Failure:
    try:
        return Source.decode(path, raw)
    except SourceError as error:
        return Failure(path, error.line, error.reason)


def _located(source: Source, findings: Sequence[Finding]) -> tuple[Located, ...]:
    marks = fingerprints(source, findings)
    return tuple(Located(finding, source.line(finding.position.line), mark) for finding, mark in zip(findings, marks, strict=True))
