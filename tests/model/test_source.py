"""Sources: encodings and line ends survive, positions are those of an editor."""

from __future__ import annotations

import pytest

from torchfix_codemods.source import Source, SourceError

ROUND_TRIPS = [
    b"x = 1\n",
    b"\xef\xbb\xbfx = 'a'\r\n",
    "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    "# vim: set fileencoding=cp1252 :\nx = '€'\n".encode("cp1252"),
    "x = 'ü漢'".encode(),
    b"#!/usr/bin/python\n# coding: utf8\nx = 1",
    b"x = 1\r\ry = 2\r",
    b"",
]


@pytest.mark.parametrize("raw", ROUND_TRIPS)
def test_encode_is_the_inverse_of_decode(raw):
    source = Source.decode("x.py", raw)
    assert source.encode(source.data) == raw


@pytest.mark.parametrize(("raw", "line"), [(b"x = 1\ny = '\xff'\n", 2), (b"# coding: nonsense\nx = 1\n", 1)])
def test_bad_encodings_name_the_line(raw, line):
    with pytest.raises(SourceError) as caught:
        Source.decode("x.py", raw)
    assert caught.value.line == line


def test_positions_count_characters():
    source = Source("x.py", "é = 1; y = 2\n\tz = 3\n".encode())
    assert source.position(source.data.index(b"y")) == (1, 8)
    assert source.position(source.data.index(b"z")) == (2, 2)
