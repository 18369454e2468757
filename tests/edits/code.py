"""A text to edit, whose parts are addressed by their own text."""

from __future__ import annotations

import ast
import warnings

from torchfix_codemods.edits.apply import apply_groups
from torchfix_codemods.source import Source, Span


class Code:
    def __init__(self, text: str) -> None:
        self.source = Source("code.py", text.encode())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = ast.parse(text)

    def __getitem__(self, part: str) -> Span:
        start = self.source.data.index(part.encode())
        assert self.source.data.count(part.encode()) == 1, part
        return Span(start, start + len(part.encode()))

    def edited(self, *edits) -> str:
        result = apply_groups(self.source, self.tree, [edits])
        assert result.refused == {}
        assert result.applied == (0,)
        return result.data.decode()

    def refusal(self, *edits) -> str:
        result = apply_groups(self.source, self.tree, [edits])
        assert result.data == self.source.data
        assert result.applied == ()
        return result.refused[0]
