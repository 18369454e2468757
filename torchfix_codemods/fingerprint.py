"""What a finding is recognised by when lines have moved: the rule, the function around it, and the code itself."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .rule import Finding
    from .source import Source

_LENGTH = 16
"""Hexadecimal digits: 64 bits, of which a file uses a handful."""


def fingerprints(source: Source, findings: Sequence[Finding]) -> Iterator[str]:
    """A fingerprint for each finding of one file, unique in it.

    The line number and the layout of the code don't count, nor does the name of the file: who compares files adds it.
    Findings that are alike in all that counts are numbered in their order.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    for finding in findings:
        key = (finding.rule, finding.scope, _layout_free(source.data[finding.span.start : finding.span.end]))
        text = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        yield sha256(text.encode()).hexdigest()[:_LENGTH]


def _layout_free(code: bytes) -> str:
    """The code without white space, and without the commas that a formatter adds."""
    text = "".join(code.decode().split())
    for closing in ")]}":
        text = text.replace("," + closing, closing)
    return text.replace("'", '"')
