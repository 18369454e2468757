"""Everything in a file that names a GPU outright, and whether all of it can go through one device variable."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from torchfix_codemods.edits import ChangeMethod, InsertBefore, NeedImport, RemoveArgument, ReplaceExpression
from torchfix_codemods.model import Kind
from torchfix_codemods.model.flow import catches
from torchfix_codemods.model.torch_api import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.edits import Edit
    from torchfix_codemods.model import FileModel

_CUDA = re.compile(r"cuda(:\d+)?")
_GUARD = re.compile(r"cuda|gpu|\bdevice", re.IGNORECASE)
_NAMES = frozenset({"device", "dev", "DEVICE"})
_INDEXED = re.compile(r"cuda:\d+")
_PER_RANK = (
    b"set_device",
    b"device_count",
    b"init_process_group",
    b"DistributedDataParallel",
    b"LOCAL_RANK",
    b"local_rank",
    b"mp.spawn",
    b"jit.script",
)
_FRAMEWORKS = ("lightning", "pytorch_lightning", "accelerate", "ignite", "deepspeed", "fairseq", "fastai", "skorch", "composer")
_TYPES = re.compile(rb"torch\.cuda\.(Float|Double|Half|Long|Int|Short|Char|Byte|Bool)Tensor")


@dataclass(frozen=True, slots=True)
class Placement:
    """One expression that puts something on a GPU."""

    node: ast.Call | ast.Constant
    form: str
    """`call` for `.cuda()`, `literal` for a device as text where a variable may stand, `definition` for that of a variable."""


@dataclass(frozen=True, slots=True)
class Placements:
    """Those of one file."""

    found: tuple[Placement, ...] = ()
    obstacle: str = ""
    """Why they can't all go through one device; empty when they can."""


@lru_cache(1)
def placements(file: FileModel) -> Placements:
    """What names a GPU in a file, unless a framework, a rank or a test for a GPU decides about it."""
    if (
        any(file.names.imports(name) for name in _FRAMEWORKS)
        or any(word in file.source.data for word in _PER_RANK)
        or _leaves_without_gpu(file)
    ):
        return Placements()
    found = sorted(_found(file), key=lambda p: (p.node.lineno, p.node.col_offset))
    if len({text for p in found for text in _INDEXED.findall(file.source.code(p.node))}) > 1:
        return Placements()  # the parts of a model on several GPUs
    free = [p for p in found if not _is_guarded(file, p.node) and not _is_framework(file, p.node)]
    return Placements(tuple(free), _obstacle(file, free) if free else "")


def _found(file: FileModel) -> Iterator[Placement]:
    for call in file.methods("cuda"):
        if not file.qualified(call.func) and not _is_own_method(file, call):
            yield Placement(call, "call")
    for node in file.index.all(ast.Constant):
        if isinstance(node.value, str) and _CUDA.fullmatch(node.value):
            form = _literal_form(file, node)
            if form:
                yield Placement(node, form)


def _is_own_method(file: FileModel, call: ast.Call) -> bool:
    """A class of the file that moves itself, and isn't a module."""
    fact = file.fact(call.func.value) if isinstance(call.func, ast.Attribute) else None
    return fact is not None and not fact.is_tensor and fact.kind not in {Kind.MODULE, Kind.UNDECIDED}


def _literal_form(file: FileModel, node: ast.Constant) -> str:
    parent = file.parent(node)
    if isinstance(parent, ast.Assign) and parent.value is node and isinstance(parent.targets[0], ast.Name):
        return "definition" if parent.targets[0].id in _NAMES else ""
    call = file.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call):
        return ""
    name = file.qualified(call.func) or ""
    if name == "torch.device":
        return "definition" if len(call.args) == 1 and not call.keywords and _is_a_place(file, call) else ""
    if isinstance(parent, ast.keyword):
        places = name in FACTORIES or (isinstance(call.func, ast.Attribute) and call.func.attr == "to" and not name)
        return "literal" if parent.arg == "device" and places else ""
    is_move = isinstance(call.func, ast.Attribute) and call.func.attr == "to" and not name
    return "literal" if is_move and call.args and call.args[0] is node else ""


def _is_a_place(file: FileModel, device: ast.Call) -> bool:
    """Whether a device is where something is put: not one that is compared, or asked about."""
    parent = file.parent(device)
    asked = isinstance(parent, ast.Call) and (file.qualified(parent.func) or "").startswith("torch.cuda.")
    return not asked and not isinstance(parent, (ast.Attribute, ast.Compare))


def _is_guarded(file: FileModel, node: ast.AST) -> bool:
    """Whether a test for a GPU (or for what the user wants) stands around a placement."""
    child: ast.AST = node
    for ancestor in file.flow.ancestors(node):
        if (
            isinstance(ancestor, (ast.If, ast.IfExp, ast.While))
            and child is not ancestor.test
            and _GUARD.search(ast.unparse(ancestor.test))
        ):
            return True
        if isinstance(ancestor, ast.BoolOp) and any(_GUARD.search(ast.unparse(v)) for v in ancestor.values if v is not child):
            return True
        if isinstance(ancestor, ast.Try) and any(catches(h, "RuntimeError", "AssertionError") for h in ancestor.handlers):
            return True
        child = ancestor
    return False


def _leaves_without_gpu(file: FileModel) -> bool:
    """`if not torch.cuda.is_available(): sys.exit(…)`: nothing after it has to run without one."""
    return any(
        "is_available" in ast.unparse(node.test) and isinstance(node.body[-1], (ast.Raise, ast.Return, ast.Expr))
        for node in file.index.all(ast.If)
        if isinstance(node.test, ast.UnaryOp)
    ) or any("is_available" in ast.unparse(node.test) for node in file.index.all(ast.Assert))


def _is_framework(file: FileModel, node: ast.AST) -> bool:
    return file.roles.is_framework_code(file.flow.function(node) or file.tree) or file.roles.in_tests


def _obstacle(file: FileModel, found: list[Placement]) -> str:
    if _TYPES.search(file.source.data):
        return "it uses tensor types of torch.cuda, which have no portable form"
    calls = [p.node for p in found if p.form == "call" and isinstance(p.node, ast.Call)]
    variable = next((call for call in calls if not _names_no_index(call)), None)
    if variable is not None:
        return f"line {variable.lineno} chooses a GPU by an index"
    unproven = [call for call in calls if not _is_proven(file, call)]
    if unproven and len(unproven) == len(calls):
        return f"what is moved in line {unproven[0].lineno} isn't known to be a tensor or module"
    placed = next((p for p in found if p.form != "definition" and device_for(file, p.node) is None), None)
    return f"which device variable holds in line {placed.node.lineno} isn't clear" if placed else ""


def _names_no_index(call: ast.Call) -> bool:
    arguments = [*call.args, *(k.value for k in call.keywords if k.arg != "non_blocking")]
    plain = all(
        isinstance(a, ast.Constant) and (a.value == 0 or (isinstance(a.value, str) and _CUDA.fullmatch(a.value))) for a in arguments
    )
    return plain and len(arguments) <= 1 and not any(k.arg is None for k in call.keywords)


def _is_proven(file: FileModel, call: ast.Call) -> bool:
    fact = file.fact(call.func.value) if isinstance(call.func, ast.Attribute) else None
    return fact is not None and fact.proven and (fact.is_tensor or fact.kind is Kind.MODULE)


def device_for(file: FileModel, node: ast.AST) -> str | None:
    """The device variable to use at a place: one that is there, that of the arguments, or `device`, which is made then."""
    known = file.device_at(node) or _from_arguments(file, node)
    if known:
        return known
    scope = file.names.visible("device", node)
    return "device" if scope is None or (scope.node is file.tree and _is_definition(file)) else None


def _from_arguments(file: FileModel, node: ast.AST) -> str | None:
    """`args.device`, where the command line has `--device`."""
    if b'"--device"' not in file.source.data and b"'--device'" not in file.source.data:
        return None
    for name in ("args", "opt", "opts", "options", "config", "cfg"):
        scope = file.names.visible(name, node)
        bound = scope.bindings[name] if scope is not None else []
        if len(bound) == 1 and (isinstance(bound[0], ast.arg) or getattr(bound[0], "lineno", 0) < file.flow.statement(node).lineno):
            return f"{name}.device"
    return None


def _is_definition(file: FileModel) -> bool:
    """Whether `device` at module level is (or becomes) a device, bound once."""
    bindings = file.index.scopes[file.tree].bindings.get("device", [])
    value = file.flow.definition(bindings[0]).value if len(bindings) == 1 else None
    fact = file.fact(value) if value is not None else None
    return fact is not None and fact.kind in {Kind.DEVICE, Kind.TEXT}


def edits_for(file: FileModel, found: list[Placement]) -> list[Edit] | None:
    """The edits that put placements through a device variable, with its definition where the file has none."""
    edits: list[Edit] = []
    available = file.spelling("torch.cuda.is_available", found[0].node)
    if available is None:
        return None
    for placement in found:
        edits += _edits(file, placement, f"{available}()")
    missing = [p for p in found if p.form != "definition" and _needs_definition(file, p.node)]
    if missing:
        first = _first_statement(file)
        device = file.spelling("torch.device", first)
        edits.append(InsertBefore(file.source.span(first), f'device = {device}("cuda" if {available}() else "cpu")', apart=True))
        edits += [NeedImport("torch")] if file.lacks_torch(first) else []
    return edits


def _needs_definition(file: FileModel, node: ast.AST) -> bool:
    return device_for(file, node) == "device" and file.names.visible("device", node) is None


def _edits(file: FileModel, placement: Placement, available: str) -> list[Edit]:
    node = placement.node
    if placement.form == "definition":
        text = file.source.code(node)
        return [ReplaceExpression(file.source.span(node), f"{text} if {available} else {text[0]}cpu{text[0]}")]
    device = device_for(file, node) or "device"
    if placement.form == "literal" or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return [ReplaceExpression(file.source.span(node), device)]
    span = file.source.span(node)
    dropped = list(node.args) + [k.value for k in node.keywords if k.arg != "non_blocking"]
    removed: list[Edit] = [RemoveArgument(span, file.source.span(value)) for value in dropped]
    return [*removed, ChangeMethod(span, file.source.span(node.func.value), "to", device)]


def _first_statement(file: FileModel) -> ast.stmt:
    """The first statement after the imports that begin the block in which torch is imported."""
    statements: list[ast.Import | ast.ImportFrom] = [*file.index.all(ast.Import), *file.index.all(ast.ImportFrom)]
    torch = next((s for s in statements if file.flow.function(s) is None and _is_of_torch(s)), None)
    block = file.flow.place(torch).block if torch is not None else file.tree.body
    last = max((i for i, s in enumerate(block) if isinstance(s, (ast.Import, ast.ImportFrom)) and _is_at_top(block, i)), default=-1)
    return block[min(last + 1, len(block) - 1)]


def _is_of_torch(statement: ast.Import | ast.ImportFrom) -> bool:
    names = [statement.module or ""] if isinstance(statement, ast.ImportFrom) else [alias.name for alias in statement.names]
    return any(name.partition(".")[0] == "torch" for name in names)


def _is_at_top(body: list[ast.stmt], index: int) -> bool:
    """Whether nothing but imports, texts and plain statements stand before: no class, function or loop."""
    return not any(isinstance(s, (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.With)) for s in body[:index])
