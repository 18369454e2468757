"""The old `Variable`: calls of it, and its import once nothing uses it."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.edits import DeleteStatement, ReplaceStatement
from torchfix_codemods.model.project_names import Symbol

if TYPE_CHECKING:
    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel

NAMES = ("torch.autograd.Variable", "torch.autograd.variable.Variable")
_PARAMETERS = ("data", "requires_grad", "volatile")


class Wrapping(NamedTuple):
    """One call of Variable, and what it is given."""

    call: ast.Call
    tensor: ast.expr
    requires_grad: ast.expr | None
    volatile: ast.expr | None


def wrappings(file: FileModel) -> list[Wrapping]:
    """The calls of torch's Variable with one tensor."""
    found = (_wrapping(call) for call in file.calls(*NAMES))
    return [wrapping for wrapping in found if wrapping is not None]


def _wrapping(call: ast.Call) -> Wrapping | None:
    if len(call.args) > len(_PARAMETERS) or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    given = dict(zip(_PARAMETERS, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    tensor = given.pop("data", None)
    if tensor is None or is_constant(tensor, None) or not given.keys() <= set(_PARAMETERS):
        return None
    return Wrapping(call, tensor, given.get("requires_grad"), given.get("volatile"))


def is_constant(node: ast.expr | None, value: bool | None) -> bool:
    """Whether an expression is this very literal."""
    return isinstance(node, ast.Constant) and node.value is value


def import_without(file: FileModel, calls: list[ast.Call]) -> list[Edit]:
    """Take away the import of a name that only these calls use."""
    names = [call.func for call in calls if isinstance(call.func, ast.Name)]
    if not names or len(names) != len(calls) or file.source.path.endswith("__init__.py"):
        return []
    bindings = file.names.bindings(names[0])
    if len(bindings) != 1 or len(file.kinds.reads(names[0].id)) != len(names) or "__all__" in file.source.text:
        return []
    if _is_used_elsewhere(file, names[0].id):
        return []
    statement = file.parent(bindings[0])
    if not isinstance(statement, ast.ImportFrom) or file.parent(statement) is not file.tree or _is_commented(file, statement):
        return []
    others = [alias for alias in statement.names if alias is not bindings[0]]
    span = file.source.span(statement)
    if not others:
        return [DeleteStatement(span)]
    return [ReplaceStatement(span, ast.unparse(ast.ImportFrom(statement.module, others, statement.level)))]


def _is_used_elsewhere(file: FileModel, name: str) -> bool:
    """Whether another file of the project may get the name from this one, by `import *` or by its name."""
    project, path = file.view.project, file.view.path
    module = PurePosixPath(path).stem
    taken = re.compile(rf"\b{module}\s+import\s+\*|\b{module}\s+import\b[^#\n]*\b{name}\b|\b{module}\.{name}\b")
    importers = project.importers(Symbol(path, name)) if path else ()
    texts = ((project.files.read(importer) or b"").decode(errors="replace") for importer in importers)
    return any(name in text and taken.search(text) for text in texts)


def _is_commented(file: FileModel, statement: ast.stmt) -> bool:
    """Whether a comment stands in or behind an import: it may be about the name that goes, or about another."""
    lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    return any("#" in file.source.line(number) for number in lines)
