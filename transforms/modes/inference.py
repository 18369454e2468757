"""Code that loads weights into a model and runs it, in a file that trains nothing and switches no mode."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torchfix_codemods.model import Happening, Kind, Recording
from torchfix_codemods.model.flow import LOOPS
from torchfix_codemods.model.index import COMPREHENSIONS
from torchfix_codemods.model.training import own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel

_TRAINS = ("eval", "train", "backward", "step")
_GRADIENTS = ("grad", "requires_grad", "requires_grad_")
# Generators of images are often run with the statistics of their batch, or with dropout as their noise, as in pix2pix.
_GENERATOR = re.compile(r"^(net_?)?G(_|\d|$)|gen(erator)?(_|\d|$)|GAN", re.IGNORECASE)
_HARMLESS = frozenset({"builtins.print", "builtins.len", "builtins.type", "builtins.isinstance"})


class Inference(NamedTuple):
    """A model that gets its weights, and its first run after that."""

    load: ast.Expr
    model: ast.Name
    forward: ast.Call


def inferences(file: FileModel) -> Iterator[Inference]:
    """Models that are run to predict in the block of code that loads their weights, still in train mode."""
    if file.roles.in_tests or any(file.attributes(name) for name in (*_TRAINS, "training")):
        return
    for call in file.methods("load_state_dict"):
        load, model = file.parent(call), call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(load, ast.Expr) or not isinstance(model, ast.Name) or not _is_module(file, model):
            continue
        forward = _first_run(file, load, model)
        if forward is not None and _is_inference(file, forward):
            yield Inference(load, model, forward)


def _is_inference(file: FileModel, forward: ast.Call) -> bool:
    """Whether gradients are off, or a script wants none; what a function returns with gradients may be trained elsewhere."""
    if file.gradients.recording(forward) is Recording.OFF:
        return True
    wanted = any(file.attributes(name) for name in _GRADIENTS) or any(k.arg == "requires_grad" for k in file.index.all(ast.keyword))
    return not wanted and file.flow.function(forward) is None


def _is_module(file: FileModel, model: ast.Name) -> bool:
    fact = file.fact(model)
    if _GENERATOR.search(model.id):
        return False
    function = file.flow.function(model)
    return bool(fact and fact.proven and fact.kind is Kind.MODULE) and not file.roles.is_framework_code(function or file.tree)


def _first_run(file: FileModel, load: ast.Expr, model: ast.Name) -> ast.Call | None:
    """The first forward of the model after the load; None when something else may see the model, and switch its mode."""
    function = file.flow.function(load)
    body = function.body if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else file.tree.body
    nodes = [node for statement in body for node in own_nodes(statement)]
    if any(_is_passed_on(file, node, model.id) for node in nodes if isinstance(node, ast.Call)):
        return None
    events = (event for node in nodes for event in file.training.at(node) if event.happening is Happening.FORWARD)
    runs = (e.node for e in events if isinstance(e.subject, ast.Name) and e.subject.id == model.id and e.node.lineno > load.lineno)
    first = next((run for run in runs if isinstance(run, ast.Call)), None)
    return None if first is None or _is_repeated(file, first) else first


def _is_repeated(file: FileModel, run: ast.Call) -> bool:
    """Whether a loop runs the same input again and again: that samples with dropout, and means train mode."""
    loop = next((a for a in file.flow.ancestors(run) if isinstance(a, (*LOOPS, *COMPREHENSIONS))), None)
    given = {name for argument in run.args for name in ast.walk(argument) if isinstance(name, ast.Name)}
    bindings = [binding for name in given for binding in file.flow.reaching(name)]
    return loop is not None and not any(loop in file.flow.ancestors(binding) for binding in bindings)


def _is_passed_on(file: FileModel, call: ast.Call, name: str) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(v, ast.Name) and v.id == name for v in given) and file.qualified(call.func) not in _HARMLESS
