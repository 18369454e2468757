"""One file's text as values: decoded once, addressed by UTF-8 byte spans, encoded back without loss."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_NEWLINE = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def syntax_tree(text: str) -> ast.Module:
    """The syntax tree of Python text; raises what `ast.parse` raises.

    Warnings about the text (such as the one on an unknown escape, since Python 3.12) are not this tool's to give.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


class Span(NamedTuple):
    """A half-open range of UTF-8 byte offsets in `Source.data`."""

    start: int
    end: int

    def contains(self, other: Span) -> bool:
        """Whether `other` lies inside this span (or is equal to it)."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        """Whether the two share a byte; an empty span overlaps what it stands in, and its own equal."""
        if self == other:
            return True
        return self.start < other.end and other.start < self.end


class Position(NamedTuple):
    """A place as people write it: line and column, both from 1, the column in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SourceError(Exception):
    """A file that cannot be read as Python: where, why, and what to do about it."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


@dataclass(frozen=True)
class Source:
    """A Python file: `data` is its text in UTF-8 without a byte order mark, whatever the file's own encoding."""

    path: str
    data: bytes
    encoding: str = "utf-8"
    has_bom: bool = False

    @classmethod
    def decode(cls, path: str, raw: bytes) -> Source:
        """Read the bytes of a file; raises `SourceError` where the encoding is unknown or does not fit."""
        has_bom = raw.startswith(_BOM)
        body = raw[len(_BOM) :] if has_bom else raw
        encoding = _declared_encoding(body) or "utf-8"
        try:
            data = body if encoding in {"utf-8", "utf8"} and not _decode_strictly(body) else body.decode(encoding).encode()
        except LookupError:
            raise SourceError(path, 1, f"unknown encoding {encoding!r}; save the file as UTF-8") from None
        except UnicodeError as error:
            line = body[: getattr(error, "start", 0)].count(b"\n") + 1
            raise SourceError(path, line, f"bytes that are not valid {encoding}; declare the encoding or save as UTF-8") from None
        return cls(path, data, encoding, has_bom)

    def encode(self, data: bytes) -> bytes:
        """Turn new UTF-8 text back into the bytes of the file: same encoding, same byte order mark."""
        body = data if self.encoding in {"utf-8", "utf8"} else data.decode().encode(self.encoding)
        return _BOM + body if self.has_bom else body

    def replace(self, data: bytes) -> Source:
        """The same file with other text."""
        return Source(self.path, data, self.encoding, self.has_bom)

    @cached_property
    def text(self) -> str:
        """The file as a string."""
        return self.data.decode()

    @cached_property
    def line_starts(self) -> list[int]:
        """The byte offset of each line's first byte; lines end at CR, LF or CRLF, as in Python's tokenizer."""
        return [0, *(match.end() for match in _NEWLINE.finditer(self.data))]

    def offset(self, line: int, column: int) -> int:
        """The byte offset of `ast`'s line (from 1) and column (bytes, from 0)."""
        return self.line_starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.ExceptHandler | ast.arg | ast.keyword) -> Span:
        """The bytes of a node, as `ast` counts them (a decorated function starts at its `def`)."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset))

    def code(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, as written."""
        span = self.span(node)
        return self.data[span.start : span.end].decode()

    def position(self, offset: int) -> Position:
        """The line and column of a byte offset."""
        line = bisect_right(self.line_starts, offset)
        column = len(self.data[self.line_starts[line - 1] : offset].decode(errors="replace")) + 1
        return Position(line, column)

    def line(self, number: int) -> str:
        """The text of a line (from 1), without its line end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.data)
        return self.data[start:end].decode().rstrip("\r\n")


def _declared_encoding(body: bytes) -> str | None:
    """The encoding cookie of the first two lines (PEP 263), lower case."""
    for line in body.split(b"\n", 2)[:2]:
        match = _COOKIE.match(line)
        if match:
            return match.group(1).decode().lower().replace("_", "-")
        if line.strip() and not line.lstrip().startswith(b"#"):
            return None
    return None


def _decode_strictly(body: bytes) -> bool:
    """False when the bytes are valid UTF-8; raises `UnicodeDecodeError` when they are not."""
    body.decode("utf-8")
    return False
