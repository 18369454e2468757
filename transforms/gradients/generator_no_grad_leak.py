"""Rule `generator-no-grad-leak`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import Unwrap
from torchfix_codemods.effects import RAISES_LESS, RECORDS_GRADIENTS
from torchfix_codemods.model.torch_api import NO_GRAD_CONTEXTS, SET_GRAD_ENABLED
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

from .guards import decoration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.rule import Finding

_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property"})
_MEANT_FOR_THE_CALLER = ("context", "fixture", "hook")


class GeneratorNoGradLeak(Rule):
    """Generator that yields inside `with torch.no_grad():`, and so turns gradients off for whoever consumes it.

    ## Why
    Grad mode belongs to the thread: while the generator is suspended in the `with`, its consumer records nothing, and
    two generators that are closed in the wrong order leave gradients off for good. As a decorator, `no_grad` is entered
    anew for each resumption and left at each `yield`.

    ## Example
    ```python
    import torch


    def features(model, loader):
        with torch.no_grad():
            for x in loader:
                yield model(x)
    ```
    ```python
    import torch


    @torch.no_grad()
    def features(model, loader):
        for x in loader:
            yield model(x)
    ```

    ## Safety
    Unsafe: the consumer records gradients again, which is the intent. Only where the `with` is all that the generator
    does; else it is reported. Context managers and fixtures yield inside on purpose, and are kept.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    name = "generator-no-grad-leak"
    category = Category.GRADIENTS
    safety = Safety.UNSAFE
    effects = (
        RECORDS_GRADIENTS,
        RAISES_LESS,
    )
    needles = (b"torch", b"yield", b"with ")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the `with` statements of generators that turn gradients off around a yield."""
        for statement in file.index.all(ast.With):
            context = _context(file, statement)
            function = file.flow.function(statement) if context is not None else None
            if context is None or not isinstance(function, ast.FunctionDef) or not _yields(statement):
                continue
            if not _is_for_the_caller(file, function) and not _is_guarded(file, function):
                yield self._finding(file, statement, function, context)

    def _finding(self, file: FileModel, statement: ast.With, function: ast.FunctionDef, context: ast.Call) -> Finding:
        code = ast.unparse(context)
        no_grad, edits = decoration(file, context.func, function)
        message = f"`{function.name}` yields inside `with {code}:`, which turns gradients off for its consumer"
        if not edits or not _is_all_of(function, statement):
            return self.finding(file, context, f"{message}: leave the `with` before each yield, or decorate with @{no_grad or code}")
        return self.finding(file, context, f"{message}: decorate it with @{no_grad}", *edits, Unwrap(file.source.span(statement)))


def _is_all_of(function: ast.FunctionDef, statement: ast.With) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    plain = all(isinstance(d, ast.Name) and d.id in _PLAIN_DECORATORS for d in function.decorator_list)
    return body == [statement] and len(statement.items) == 1 and plain


def _context(file: FileModel, statement: ast.With) -> ast.Call | None:
    for item in statement.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and item.optional_vars is None and _turns_off(file, call):
            return call
    return None


def _turns_off(file: FileModel, call: ast.Call) -> bool:
    name, given = file.qualified(call.func), [*call.args, *(keyword.value for keyword in call.keywords)]
    if name in SET_GRAD_ENABLED:
        return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False
    return name in NO_GRAD_CONTEXTS and not given


def _yields(statement: ast.With) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for inner in statement.body for node in own_nodes(inner))


def _is_guarded(file: FileModel, function: ast.FunctionDef) -> bool:
    """Whether a decorator enters and leaves the grad mode around each resumption already."""
    decorators = (getattr(decorator, "func", decorator) for decorator in function.decorator_list)
    return any(file.qualified(decorator) in NO_GRAD_CONTEXTS for decorator in decorators)


def _is_for_the_caller(file: FileModel, function: ast.FunctionDef) -> bool:
    """Whether the generator is made into a context manager, a fixture or a hook, by a decorator or by a call."""
    makers: list[ast.AST] = [getattr(decorator, "func", decorator) for decorator in function.decorator_list]
    for read in file.kinds.reads(function.name):
        call = file.parent(read)
        if isinstance(call, ast.Call) and read in call.args:
            makers.append(call.func)
    words = " ".join(f"{ast.unparse(maker)} {file.qualified(maker)}".lower() for maker in makers)
    return any(word in words for word in _MEANT_FOR_THE_CALLER)
