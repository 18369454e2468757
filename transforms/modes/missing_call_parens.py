"""Rule `missing-call-parens`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeTail
from torchfix_codemods.effects import (
    MAY_CLEAR_GRADIENTS,
    MAY_GIVE_GRADIENTS,
    MAY_RUN_IN_EVAL_MODE,
    MORE_BACKWARDS,
    MORE_STEPS,
    RUNS_IN_TRAIN_MODE,
)
from torchfix_codemods.model import Kind
from torchfix_codemods.model.facts import TENSOR
from torchfix_codemods.model.flow import Form, catches
from torchfix_codemods.rule import Category, Rule, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import Fact, FileModel
    from torchfix_codemods.rule import Finding

_METHODS: dict[str, frozenset[Kind]] = {
    "eval": frozenset({Kind.MODULE}),
    "train": frozenset({Kind.MODULE}),
    "zero_grad": frozenset({Kind.MODULE, Kind.OPTIMIZER}),
    "step": frozenset({Kind.OPTIMIZER, Kind.SCHEDULER}),
    "update": frozenset({Kind.SCALER}),
    "backward": frozenset({Kind.TENSOR, Kind.SCALAR_TENSOR}),
    "zero_": frozenset({Kind.TENSOR, Kind.SCALAR_TENSOR}),
}
"""Methods that are called for their effect and need no argument, and what has them."""
_NEED_ARGUMENTS = frozenset({"torch.optim.LBFGS", "torch.optim.lr_scheduler.ReduceLROnPlateau"})
"""Classes whose `step()` needs a closure, or what it judges by."""
_CELL = re.compile(r"\s*# ?(%%|In\[)")
"""How scripts mark the cells of the notebook that they were, or can be read as."""


class MissingCallParens(Rule):
    """Method that is named as a statement, and never called.

    ## Why
    `model.eval` without parentheses does nothing: the model stays in train mode, the optimizer makes no step, and
    nothing warns.

    ## Example
    ```python
    import torch


    def predict(model: torch.nn.Module, x):
        model.eval
        with torch.no_grad():
            return model(x)
    ```
    ```python
    import torch


    def predict(model: torch.nn.Module, x):
        model.eval()
        with torch.no_grad():
            return model(x)
    ```

    ## Safety
    Unsafe: what did nothing now acts, which is the intent. Only on receivers that are proven to be modules, optimizers,
    schedulers, scalers or tensors; for a name that only looks like one, and where `step` needs an argument, it is
    reported. A probe for the attribute in a `try`, properties, and the last expression of a notebook cell are kept.

    ## References
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval
    """

    name = "missing-call-parens"
    category = Category.MODES
    safety = Safety.UNSAFE
    effects = (
        MAY_RUN_IN_EVAL_MODE,
        RUNS_IN_TRAIN_MODE,
        MORE_STEPS,
        MORE_BACKWARDS,
        MAY_CLEAR_GRADIENTS,
        MAY_GIVE_GRADIENTS,
    )
    needles = (b"torch",)
    pattern = re.compile(rb"\.\s*(eval|train|zero_grad|step|update|backward|zero_)\s*(\)\s*)*(#|;|\r|\n|$)")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield statements that are nothing but such a method."""
        for statement in file.index.all(ast.Expr):
            method = statement.value
            if not isinstance(method, ast.Attribute) or method.attr not in _METHODS:
                continue
            fact = TENSOR if _is_loss(file, method) else file.fact(method.value)
            if fact is None or fact.kind not in _METHODS[method.attr] or _is_replaced(file, fact, method.attr):
                continue
            if not _is_probe(file, statement) and not _shows_value(file, statement):
                yield self._finding(file, method, fact)

    def _finding(self, file: FileModel, method: ast.Attribute, fact: Fact) -> Finding:
        code = ast.unparse(method)
        if not fact.proven:
            what = fact.kind.name.lower().replace("_", " ")
            return self.finding(file, method, f"if `{ast.unparse(method.value)}` is a {what}, call it: `{code}` alone does nothing")
        if method.attr == "step" and fact.origin in _NEED_ARGUMENTS:
            return self.finding(file, method, f"`{code}` without parentheses does nothing: call it with the argument that it needs")
        edit = ChangeTail(file.source.span(method), file.source.span(method.value), (method.attr,))
        return self.finding(file, method, f"`{code}` without parentheses does nothing: call it", edit)


def _is_loss(file: FileModel, method: ast.Attribute) -> bool:
    """Whether `backward` is named of a value that was computed here: but for engines, nothing else has it."""
    loss = method.value
    if method.attr != "backward" or not isinstance(loss, ast.Name) or file.fact(loss) is not None or file.training.is_engine(loss):
        return False
    definitions = [file.flow.definition(binding) for binding in file.flow.reaching(loss)]
    computed = (form is Form.ASSIGNED and not path and isinstance(value, (ast.Call, ast.BinOp)) for form, value, path in definitions)
    return bool(definitions) and all(computed)


def _is_replaced(file: FileModel, fact: Fact, name: str) -> bool:
    """Whether the receiver's own class makes something else of the name: a property, or a method that needs arguments."""
    definition = fact.origin
    if not isinstance(definition, ast.ClassDef):
        return file.classes.has_method(definition, name)
    method = file.classes.method(definition, name)
    if method is None:
        return file.classes.assigns(definition, name)
    return bool(method.decorator_list) or len(method.args.args) - len(method.args.defaults) > 1


def _is_probe(file: FileModel, statement: ast.Expr) -> bool:
    """Whether the statement asks for the attribute: an AttributeError would be caught, or suppressed."""
    for ancestor in file.flow.ancestors(statement):
        if isinstance(ancestor, ast.Try) and any(catches(handler, "AttributeError") for handler in ancestor.handlers):
            return True
        items = ancestor.items if isinstance(ancestor, ast.With) else ()
        if any(file.qualified(getattr(item.context_expr, "func", item)) == "contextlib.suppress" for item in items):
            return True
    return False


def _shows_value(file: FileModel, statement: ast.Expr) -> bool:
    """Whether the statement ends a cell of a notebook, which shows what it is."""
    lines = file.source.text.splitlines()
    if not any(map(_CELL.match, lines)):
        return False
    block, place = file.flow.place(statement)
    following = block[place + 1].lineno - 1 if statement is not block[-1] else len(lines)
    return statement is block[-1] or any(map(_CELL.match, lines[statement.lineno : following]))
