"""How a module of the file was made, and whether the same expression makes it again at another place."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import Form
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.outline import has_special_buffers, stores_on_self
from torchfix_codemods.model.torch_api import CONTAINERS, KEEPS_MODULE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.facts import Origin
    from torchfix_codemods.model.identity import Identity

    from .sites import Site

_STATE_METHODS = frozenset({"__getstate__", "__setstate__", "__reduce__", "__reduce_ex__"})
_CHANGES_STRUCTURE = frozenset(
    """
    add_module register_module register_parameter register_buffer register_forward_hook half double bfloat16 float
    requires_grad_ apply fuse set_swish register_forward_pre_hook append extend insert pop
    """.split()
)
_SURGERY = ("prune", "weight_norm", "spectral_norm", "parametri", "quantiz", "convert", "fuse_modules", "lora", "peft", "script", "trace")


@dataclass(frozen=True, slots=True)
class Construction:
    """The expression that makes a module, and the moves chained to it (`to(device)`)."""

    call: ast.Call
    code: str
    moves: tuple[str, ...]


def construction(file: FileModel, model: ast.expr) -> Construction | None:
    """How the saved module was made; None when there is not exactly one shown way."""
    if not isinstance(model, ast.Name):
        return None
    bindings = file.flow.reaching(model)
    if len(bindings) != 1:
        return None
    form, value, path = file.flow.definition(bindings[0])
    if form is not Form.ASSIGNED or path or not isinstance(value, ast.Call):
        return None
    moves: list[str] = []
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in KEEPS_MODULE
        and not file.qualified(value.func)
    ):
        if value.func.attr in {"to", "cuda"}:
            arguments = ", ".join(file.source.code(a) for a in value.args)
            moves.insert(0, f"{value.func.attr}({arguments})")
        elif value.func.attr not in {"eval", "train", "cpu"}:
            return None
        value = value.func.value
    return Construction(value, file.source.code(value), tuple(moves)) if isinstance(value, ast.Call) else None


def is_repeatable(file: FileModel, call: ast.Call, made_at: ast.AST, load: ast.AST) -> bool:
    """Whether the constructor means the same at the load: its names are visible there, and its arguments constant."""
    if file.names.qualified(call.func) is None and not _same_binding(file, call.func, load):
        return False
    values = [*call.args, *(k.value for k in call.keywords)]
    return all(k.arg for k in call.keywords) and all(_is_constant(file, v, made_at, load) for v in values)


def spelled_elsewhere(file: FileModel, made: Construction, load: Site, place: str) -> tuple[str, str]:
    """The constructor expression as another file writes it; else an empty text and the reason."""
    call = made.call
    values = [*call.args, *(k.value for k in call.keywords)]
    if not all(k.arg for k in call.keywords) or not all(_is_literal(value) for value in values):
        return "", f"its constructor arguments aren't known where it is loaded{place}"
    name = _name_elsewhere(file, call.func, load)
    if name is None:
        return "", f"`{file.source.code(call.func)}` isn't imported where it is loaded{place}"
    arguments = [*map(file.source.code, call.args), *(f"{k.arg}={file.source.code(k.value)}" for k in call.keywords)]
    return f"{name}({', '.join(arguments)})", ""


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_literal(element) for element in node.elts)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_literal(node.operand))


def _name_elsewhere(file: FileModel, func: ast.expr, load: Site) -> str | None:
    """How another file names the same class or function at its load."""
    wanted = _meaning(file, func)
    scope = load.file.index.scopes[load.file.tree]
    for name, bindings in scope.bindings.items():
        if len(bindings) != 1 or load.file.names.visible(name, load.call) is not scope:
            continue
        target = load.file.names.import_target(bindings[0])
        own = load.file.view.symbol(name) if isinstance(bindings[0], (*FUNCTIONS, ast.ClassDef)) else None
        symbol = own or load.file.view.resolve(target)
        if wanted is not None and wanted in {symbol, target}:
            return name
        member = load.file.view.project.member(symbol, _last(func)) if symbol is not None and not symbol.name else None
        if wanted is not None and wanted in {member, f"{target}.{_last(func)}"}:
            return f"{name}.{_last(func)}"
    return None


def _meaning(file: FileModel, func: ast.expr) -> object:
    """A class or function as all files of the project know it: by its place, or by its dotted name in a library."""
    qualified = file.qualified(func)
    if qualified:
        return file.view.resolve(qualified) or qualified
    scope = file.names.scope_of(func) if isinstance(func, ast.Name) else None
    return file.view.symbol(func.id) if isinstance(func, ast.Name) and scope is not None and scope.node is file.tree else None


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _is_constant(file: FileModel, node: ast.expr, made_at: ast.AST, load: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return _is_constant(file, node.operand, made_at, load)
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_constant(file, element, made_at, load) for element in node.elts)
    if isinstance(node, ast.BinOp):
        return _is_constant(file, node.left, made_at, load) and _is_constant(file, node.right, made_at, load)
    if isinstance(node, ast.Call):
        name = file.qualified(node.func) or ""
        return name.startswith("torch.nn.") and is_repeatable(file, node, made_at, load)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return file.qualified(node) is not None or _same_binding(file, node, load)
    return False


def _same_binding(file: FileModel, node: ast.expr, load: ast.AST) -> bool:
    """Whether a name has one binding in the file's view, and refers to the same one at the load."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    scope = file.names.scope_of(node)
    return scope is not None and len(scope.bindings[node.id]) == 1 and file.names.visible(node.id, load) is scope


def change_after_making(file: FileModel, model: ast.expr, fact_class: Origin) -> str:
    """What makes the saved object more than its class and its state dict; empty when nothing does."""
    identity = file.identities.of(model)
    if identity is None:
        return "which object is saved isn't clear"
    reason = _class_state(file, fact_class)
    if reason:
        return reason
    for node in file.index.all(ast.Attribute):
        reason = _change(file, node, identity)
        if reason:
            return reason
    return _passed_to_surgery(file, identity)


def _class_state(file: FileModel, origin: Origin) -> str:
    bases = file.classes.origins(origin) if not isinstance(origin, str) else ()
    outside = next((b for b in bases if b != "torch.nn.Module" and b not in CONTAINERS), "")
    if outside:
        return f"its class descends from {outside}"
    for name, methods, storing, special_buffers in _definitions(file, origin):
        special = sorted(methods & _STATE_METHODS)
        if special:
            return f"its class defines {special[0]}"
        keeping = sorted(storing - {"__init__"})
        if keeping:
            return f"`{name}.{keeping[0]}` keeps state on the module that a state dict doesn't hold"
        if special_buffers:
            return "it has buffers that a state dict doesn't hold"
    return ""


def _definitions(file: FileModel, origin: Origin) -> Iterator[tuple[str, frozenset[str], frozenset[str], bool]]:
    """Name, methods, methods that set attributes, and whether there are special buffers, for each class of a module's lineage."""
    for base in file.classes.lineage(origin) if isinstance(origin, ast.ClassDef) else ():
        if isinstance(base, ast.ClassDef):
            methods = [method for method in base.body if isinstance(method, FUNCTIONS)]
            storing = frozenset(method.name for method in methods if stores_on_self(method))
            yield base.name, frozenset(method.name for method in methods), storing, has_special_buffers(base)
    for seen in file.classes.outlines(origin):
        yield "the class", seen.methods, seen.storing, seen.special_buffers


def _change(file: FileModel, node: ast.Attribute, identity: Identity) -> str:
    """`model.fc = nn.Linear(…)`, `model.half()`, `model.fc.weight.requires_grad = False`."""
    owner = file.identities.of(node.value)
    if owner is None or not owner.is_part_of(identity):
        return ""
    if isinstance(node.ctx, (ast.Store, ast.Del)) and node.attr != "data":
        return f"`{file.source.code(node)}` is changed after it was made"
    parent = file.parent(node)
    if isinstance(parent, ast.Call) and parent.func is node and node.attr in _CHANGES_STRUCTURE:
        return f"`{file.source.code(node)}()` changes it after it was made"
    return ""


def _passed_to_surgery(file: FileModel, identity: Identity) -> str:
    for call in file.index.all(ast.Call):
        name = file.qualified(call.func) or ""
        known = bool(file.functions.targets(call)) or name.startswith(("torch.optim.", "torch.save", "builtins.", "torch.nn.utils.clip"))
        suspicious = not known or any(word in name.lower() for word in _SURGERY)
        if not suspicious or file.kinds.fact(call.func) is not None:
            continue
        for argument in call.args:
            passed = file.identities.of(argument)
            if passed is not None and passed.is_part_of(identity):
                return f"`{ast.unparse(call.func)}` receives it and may change it"
    return ""


def is_wrapped(file: FileModel, model: ast.expr) -> bool:
    """Whether a wrapper changes the keys of its state dict."""
    fact = file.fact(model)
    return fact is not None and fact.kind is Kind.MODULE and fact.wrapped
