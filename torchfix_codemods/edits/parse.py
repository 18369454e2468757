"""From a segment's bytes to libcst and back, with the guards that make it lossless."""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from . import syntax


class Refusal(Exception):
    """An edit that can't be made without damage; the text is the reason, for people."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A segment as a libcst module, and its nodes by place in the segment's own text."""

    module: cst.Module
    text: str
    shift: int
    """Bytes that were put in front of the segment."""
    statements: dict[int, cst.CSTNode]
    """Compound and small statements by the byte they start at."""
    expressions: dict[tuple[int, int], cst.BaseExpression]
    """Expressions by the bytes they cover, without their parentheses."""


def parse_segment(data: bytes, indentation: bytes, newline: str, unit: str) -> Parsed:
    """Parse whole lines under an `if` that allows their indentation; raises `Refusal`."""
    wrapper = f"if 1:{newline}" if indentation else ""
    text = wrapper + data.decode()
    module = _comments_with_statement(_parse(text, newline, unit))
    if module.code != text:
        message = "the code around it can't be reproduced exactly (an unusual line end, form feed or backslash)"
        raise Refusal(message)
    spans = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    statements: dict[int, cst.CSTNode] = {}
    expressions: dict[tuple[int, int], cst.BaseExpression] = {}
    for node, span in spans.items():
        if isinstance(node, (cst.BaseCompoundStatement, cst.BaseSmallStatement)):
            statements[span.start] = node
        elif isinstance(node, cst.BaseExpression):
            expressions.setdefault((span.start, span.start + span.length), node)
            if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar:
                # To `ast` the parentheses are part of these two.
                start, end = spans[node.lpar[-1]], spans[node.rpar[0]]
                expressions[start.start, end.start + end.length] = node
    return Parsed(module, text, len(wrapper.encode()), statements, expressions)


def _parse(text: str, newline: str, unit: str) -> cst.Module:
    try:
        return cst.parse_module(text, cst.PartialParserConfig(default_newline=newline, default_indent=unit))
    except (cst.ParserSyntaxError, RecursionError) as error:
        message = f"libcst can't parse the code around it ({type(error).__name__})"
        raise Refusal(message) from None


def _comments_with_statement(module: cst.Module) -> cst.Module:
    """Libcst gives the comments above a module's first statement to the module; here they are the statement's."""
    if not module.header or not module.body:
        return module
    first = module.body[0]
    joined = first.with_changes(leading_lines=[*module.header, *first.leading_lines])
    return module.with_changes(header=[], body=[joined, *module.body[1:]])


def print_segment(parsed: Parsed, module: cst.Module) -> bytes:
    """The new bytes of a segment; raises `Refusal` when they aren't valid or a comment got lost."""
    new = module.code
    try:
        syntax.parsed(new)
    except syntax.NotPython as error:
        raise Refusal(str(error)) from None
    if _comments(parsed.text) - _comments(new):
        message = "a comment would be lost"
        raise Refusal(message)
    return new.encode()[parsed.shift :]


def _comments(text: str) -> Counter[str]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    except (tokenize.TokenError, SyntaxError) as error:
        message = f"the comments can't be read ({error})"
        raise Refusal(message) from None
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def parse_expression(code: str) -> cst.BaseExpression:
    """A new expression, whose lines keep the indentation they are written with; raises `Refusal` when it isn't one."""
    try:
        return cst.parse_expression(code).visit(_AsWritten())  # type: ignore[return-value]  # the visitor removes nothing
    except cst.ParserSyntaxError:
        message = f"not an expression: {code!r}"
        raise Refusal(message) from None


class _AsWritten(cst.CSTTransformer):
    """Lines that were cut from the file begin with all of their indentation already."""

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]  # no node is removed
        """Take the indentation of the place away from line breaks inside parentheses."""
        if isinstance(original_node, cst.ParenthesizedWhitespace):
            return updated_node.with_changes(indent=False)
        return updated_node


def parse_statements(code: str, unit: str = "    ") -> list[cst.BaseStatement]:
    """New statements from unindented lines; their line ends become those of the file, and their blocks are indented by `unit`.

    Raises `Refusal` when they aren't statements.
    """
    try:
        statements = cst.parse_module(code + "\n").body
    except cst.ParserSyntaxError:
        statements = ()
    if not statements:
        message = f"not statements: {code!r}"
        raise Refusal(message)
    return [statement.visit(_Adapted(unit)) for statement in statements]  # type: ignore[misc]  # the visitor removes nothing


class _Adapted(cst.CSTTransformer):
    """Makes new code print as the file does that it goes into."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def leave_Newline(self, original_node: cst.Newline, updated_node: cst.Newline) -> cst.Newline:  # noqa: ARG002, N802  # libcst's names
        return updated_node.with_changes(value=None)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:  # noqa: ARG002, N802  # libcst's names
        return updated_node.with_changes(indent=self._unit)
