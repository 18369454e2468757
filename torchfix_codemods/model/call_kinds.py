"""What a call returns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from . import torch_api as api
from .facts import ARRAY, NUMBER, OTHER, PAIR, PARAMETER, SCALAR, SEQUENCE, TENSOR, TEXT, UNDECIDED, Fact, Kind, join

if TYPE_CHECKING:
    from .index import Function
    from .kinds import Kinds
    from .project_names import Symbol

_BUILTINS = {
    **dict.fromkeys(("int", "float", "len", "bool", "round", "ord", "hash"), NUMBER),
    **dict.fromkeys(("str", "repr", "format", "input", "bytes"), TEXT),
    **dict.fromkeys(("list", "tuple", "dict", "set", "sorted", "range", "zip", "enumerate", "map", "filter", "open"), SEQUENCE),
}
_TENSOR_METHOD_KINDS = {
    **dict.fromkeys(("item", "numel", "dim", "nelement", "get_device", "element_size", "stride"), NUMBER),
    **dict.fromkeys(("size", "tolist", "split", "chunk", "unbind"), SEQUENCE),
    "numpy": ARRAY,
}
_STATEFUL = {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER}


def called(kinds: Kinds, call: ast.Call) -> Fact | None:
    """What is known of a call's result."""
    name = kinds.names.qualified(call.func)
    if name:
        imported = kinds.classes.imported(name)
        return instance(kinds, imported, call) if imported else _library(kinds, call, name) or kinds.imported.result(call)
    definition = kinds.classes.resolve(call.func)
    if definition:
        return instance(kinds, definition, call)
    functions = kinds.functions.targets(call)
    if functions:
        return join([returned(kinds, function) for function in functions])
    if isinstance(call.func, ast.Attribute):
        fact = _method(kinds, call, call.func)
        if fact is not None:
            return fact
    receiver = kinds.fact(call.func)
    return output(kinds, receiver) if receiver and receiver.kind is Kind.MODULE else None


def instance(kinds: Kinds, definition: ast.ClassDef | Symbol, call: ast.Call | None = None) -> Fact:
    """An object of a class of this file, or of another of the project."""
    if kinds.classes.is_module(definition):
        return Fact(Kind.MODULE, definition, call)
    return Fact(Kind.OPTIMIZER if kinds.classes.is_optimizer(definition) else Kind.OTHER, definition, call)


def returned(kinds: Kinds, function: Function) -> Fact | None:
    """What a function of this file returns; None when its returns disagree, or it has none."""
    if isinstance(function, ast.AsyncFunctionDef) or function.name == "__init__":
        return None
    returns = kinds.functions.returns(function)
    return join([kinds.fact(value) for value in returns]) if returns and all(returns) else None


def output(kinds: Kinds, module: Fact) -> Fact | None:
    """What calling a module returns."""
    if module.kind is not Kind.MODULE:
        return None
    if isinstance(module.origin, ast.ClassDef):
        forward = kinds.classes.method(module.origin, "forward")
        fact = returned(kinds, forward) if forward else None
    elif isinstance(module.origin, str):
        fact = _layer_output(kinds, module)
    else:
        fact = kinds.imported.output(module.origin)
    if fact is not None and fact.kind is Kind.SCALAR_TENSOR and module.wrapped:
        # DataParallel gathers one value from each device.
        fact = TENSOR
    return fact.likely() if fact and not module.proven else fact


def _layer_output(kinds: Kinds, module: Fact) -> Fact | None:
    name = str(module.origin)
    if name in api.TENSOR_LAYERS or name.startswith(api.TENSOR_OUTPUT_BUILDERS):
        return TENSOR
    if name in api.LOSS_LAYERS and module.call:
        return SCALAR if _is_reduced(module.call) else TENSOR
    if name == "torch.nn.Sequential" and module.call and module.call.args:
        last = module.call.args[-1]
        inner = kinds.fact(last.value) if isinstance(last, ast.Starred) else kinds.fact(last)
        return output(kinds, inner) if inner else None
    return None


def _is_reduced(call: ast.Call) -> bool:
    """Whether a criterion or loss function is sure to give a 0-dim tensor."""
    for keyword in call.keywords:
        if keyword.arg is None:
            return False
        if keyword.arg == "reduction" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value in {"mean", "sum"}):
            return False
        if keyword.arg == "reduce" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True):
            return False
    return not any(isinstance(a, ast.Starred) or (isinstance(a, ast.Constant) and a.value in {False, "none"}) for a in call.args)


def _library(kinds: Kinds, call: ast.Call, name: str) -> Fact | None:
    head, _, last = name.rpartition(".")
    if head == "builtins":
        return join([kinds.fact(call.args[0])]) if last in {"abs", "max", "min"} and len(call.args) == 1 else _BUILTINS.get(last)
    if name in api.WRAPPERS:
        inner = kinds.fact(call.args[0]) if call.args else None
        wrapped = name in api.KEY_CHANGING_WRAPPERS
        return Fact(inner.kind, inner.origin, inner.call, inner.proven, inner.wrapped or wrapped) if inner else None
    if name.startswith(api.MODEL_BUILDERS) or last == "from_pretrained":
        return Fact(Kind.MODULE, name, call) if last != "from_pretrained" or ".AutoModel" in name else None
    if head == "torch.nn":
        return PARAMETER if last == "Parameter" else Fact(Kind.MODULE, name, call) if last[:1].isupper() else None
    if head == "torch.optim" and last[:1].isupper():
        return Fact(Kind.OPTIMIZER, name, call)
    if head == "torch.optim.lr_scheduler":
        return Fact(Kind.SCHEDULER, name, call)
    if name in api.SCALERS or name == api.LOADER:
        return Fact(Kind.SCALER if name in api.SCALERS else Kind.LOADER, name, call)
    return _torch_function(kinds, call, name) if name.startswith("torch.") else ARRAY if head == "numpy" else None


def _torch_function(kinds: Kinds, call: ast.Call, name: str) -> Fact | None:
    head, _, last = name.rpartition(".")
    if name in api.LOSS_FUNCTIONS:
        return SCALAR if _is_reduced(call) else TENSOR
    if head in {"torch.nn.functional", "torch.special"}:
        return None if "pool" in last or last.startswith("multi_head") else TENSOR
    if name in api.PACKED_SEQUENCE_FUNCTIONS:
        return Fact(Kind.PACKED)
    if name == "torch.device":
        return Fact(Kind.DEVICE)
    if name == "torch.autograd.Variable":
        inner = kinds.fact(call.args[0]) if call.args else None
        return SCALAR if inner and inner.kind is Kind.SCALAR_TENSOR else TENSOR
    if head == "torch" and last in api.REDUCTIONS and len(call.args) == 1 and not call.keywords:
        return SCALAR
    if head == "torch" and last in api.PAIR_METHODS:
        return PAIR if last in api.ALWAYS_PAIR or _names_dimension(kinds, call, first=1) else None
    if head == "torch.linalg" and last in {"norm", "vector_norm", "matrix_norm", "det"}:
        return TENSOR
    if name == "torch.tensor" and call.args and isinstance(call.args[0], ast.Constant):
        return SCALAR
    return TENSOR if name in api.FACTORIES or name in api.TENSOR_FUNCTIONS else None


def _names_dimension(kinds: Kinds, call: ast.Call, first: int) -> bool:
    """Whether the call names the dimension to reduce; `max(a, b)` of two tensors doesn't."""
    if any(keyword.arg in {"dim", "axis", "keepdim"} for keyword in call.keywords):
        return True
    return len(call.args) > first and not kinds.is_tensor(call.args[first])


def _method(kinds: Kinds, call: ast.Call, func: ast.Attribute) -> Fact | None:
    owner = kinds.fact(func.value)
    if func.attr == "item" and not call.args:
        return NUMBER
    if owner is None:
        return _likely_tensor_method(call, func.attr)
    if owner is UNDECIDED:
        # A model that is replaced by the result of its own load is still told by how it was made.
        return UNDECIDED if func.attr in api.KEEPS_SCALAR or func.attr == "load_state_dict" else None
    if owner.is_tensor:
        fact = _tensor_method(kinds, call, owner, func.attr)
        return fact if fact is None or owner.proven else fact.likely()
    if owner.kind is Kind.MODULE and func.attr in api.KEEPS_MODULE - {"compile"}:
        return owner
    if owner.kind in _STATEFUL and func.attr == "state_dict":
        return Fact(Kind.STATE_DICT, proven=owner.proven)
    if owner.kind is Kind.MODULE and func.attr == "forward":
        return output(kinds, owner)
    if owner.kind is Kind.TEXT:
        return TEXT
    return SCALAR if owner.kind is Kind.SCALER and func.attr == "scale" else None


def _likely_tensor_method(call: ast.Call, name: str) -> Fact | None:
    """What a method that is known from tensors gives for an object that nothing is known of."""
    if name == "size" and call.args:
        return NUMBER.likely()
    return TENSOR.likely() if name in api.TENSOR_ONLY_METHODS - {"backward"} else None


def _tensor_method(kinds: Kinds, call: ast.Call, owner: Fact, name: str) -> Fact | None:
    if name == "size" and (call.args or call.keywords):
        return NUMBER
    if name in _TENSOR_METHOD_KINDS:
        return _TENSOR_METHOD_KINDS[name]
    if name in api.PAIR_METHODS and (name in api.ALWAYS_PAIR or _names_dimension(kinds, call, first=0)):
        return PAIR
    if name in api.REDUCTIONS and not call.args and all(keyword.arg == "dtype" for keyword in call.keywords):
        return SCALAR
    if name in {"max", "min", "median"}:
        return None
    if owner.kind is Kind.SCALAR_TENSOR and name in api.KEEPS_SCALAR:
        return SCALAR
    if name == "cuda" and owner.kind is Kind.PARAMETER:
        return TENSOR
    return TENSOR if name in api.TENSOR_METHODS else OTHER if name in {"storage", "data_ptr", "backward"} else None


def element_of_call(kinds: Kinds, call: ast.Call, index: int | None, rest: tuple[int | None, ...]) -> Fact | None:
    """What a part of a call's result is: pairs, recurrent layers, tuples returned by functions of this file."""
    fact = kinds.fact(call)
    splits = isinstance(call.func, ast.Attribute) and call.func.attr in {"split", "chunk", "unbind"}
    if fact is not None and (fact.kind is Kind.PAIR or (splits and fact.kind is Kind.SEQUENCE)):
        return TENSOR if not rest else None
    functions = kinds.functions.targets(call)
    receiver = kinds.fact(call.func) if not functions else None
    if receiver and receiver.kind is Kind.MODULE:
        if isinstance(receiver.origin, str):
            return _recurrent_element(kinds, receiver, index, rest)
        forward = kinds.classes.method(receiver.origin, "forward") if isinstance(receiver.origin, ast.ClassDef) else None
        functions = (forward,) if forward else ()
    parts = [kinds.element(value, (index, *rest)) if value else None for f in functions for value in kinds.functions.returns(f)]
    return join(parts) if parts else None


def _recurrent_element(kinds: Kinds, module: Fact, index: int | None, rest: tuple[int | None, ...]) -> Fact | None:
    # With a PackedSequence as input the output is one too; a file that packs anything is not to be trusted.
    if module.origin not in api.RECURRENT_LAYERS or kinds.packs_sequences:
        return None
    if index == 0:
        return TENSOR if not rest else None
    if module.origin == "torch.nn.LSTM":
        return TENSOR if len(rest) == 1 else SEQUENCE
    return TENSOR if index == 1 and not rest else None
