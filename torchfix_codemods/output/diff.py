"""Changes as a unified diff that `git apply` accepts, byte for byte."""

from __future__ import annotations

import difflib
import os
import re

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def unified_diff(path: str, before: bytes, after: bytes, root: str) -> bytes:
    """The diff of one file; the path in it is relative to `root`, which is where `git apply` is to be run."""
    name = os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/")
    old, new = _lines(before), _lines(after)
    names = (_quoted("a/" + name), _quoted("b/" + name))
    # `diff_bytes` maps bytes to text and back without loss, whatever the encoding of the file.
    lines = difflib.diff_bytes(difflib.unified_diff, old, new, *names, lineterm=b"\n")
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def _lines(data: bytes) -> list[bytes]:
    """Lines as git sees them: they end at LF alone."""
    return _LINE.findall(data)


def _quoted(name: str) -> bytes:
    """A file name as git writes it: quoted when it holds a quote, a backslash or a control sign."""
    raw = os.fsencode(name)
    if not re.search(rb'[\x00-\x1f"\\\x7f]', raw):
        return raw
    escaped = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\t", b"\\t").replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def print_colored(diff: bytes) -> None:
    """Show a diff on a terminal."""
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console(force_terminal=True)
    text = diff.decode(errors="replace").rstrip("\n")
    console.print(Syntax(text, "diff", theme="ansi_dark", background_color="default", word_wrap=True))
