"""Rule `generator-no-grad-leak`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchfix_codemods.edits import AddDecorator, Unwrap
from torchfix_codemods.model.torch_api import NO_GRAD_CONTEXTS
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

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
    needles = (b"torch", b"yield", b"with ")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the `with` statements of generators that turn gradients off around a yield."""
        for statement in file.index.all(ast.With):
            function = file.flow.function(statement)
            context = _context(file, statement)
            if context is None or not isinstance(function, ast.FunctionDef) or _is_for_the_caller(function):
                continue
            if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for inner in statement.body for node in own_nodes(inner)):
                yield self._finding(file, statement, function, context)

    def _finding(self, file: FileModel, statement: ast.With, function: ast.FunctionDef, context: ast.Call) -> Finding:
        code = file.source.code(context)
        message = f"`{function.name}` yields inside `with {code}:`, which turns gradients off for its consumer: decorate it with @{code}"
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        plain = all(isinstance(d, ast.Name) and d.id in _PLAIN_DECORATORS for d in function.decorator_list)
        if body != [statement] or len(statement.items) > 1 or not plain:
            return self.finding(file, context, f"{message}, or leave the `with` before each yield")
        return self.finding(file, context, message, AddDecorator(file.source.span(function), code), Unwrap(file.source.span(statement)))


def _context(file: FileModel, statement: ast.With) -> ast.Call | None:
    for item in statement.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and file.qualified(call.func) in NO_GRAD_CONTEXTS and item.optional_vars is None:
            return call
    return None


def _is_for_the_caller(function: ast.FunctionDef) -> bool:
    words = " ".join(ast.unparse(decorator).lower() for decorator in function.decorator_list)
    return any(word in words for word in _MEANT_FOR_THE_CALLER)
