"""What becomes of a value where it stands: read, aliased, written through, or given away."""

from __future__ import annotations

import ast
from enum import IntEnum
from typing import TYPE_CHECKING

from . import torch_api as api
from .facts import Kind

if TYPE_CHECKING:
    from .kinds import Kinds
    from .project_names import Symbol

_DEPTH = 4
_COPYING = (
    frozenset(
        """
    item tolist size numel dim nelement clone max min sort topk median mode kthvalue equal allclose is_floating_point
    new_zeros new_ones new_empty new_full new_tensor new element_size stride is_contiguous type_as masked_select
    index_select gather where repeat div mul add sub pow matmul mm bmm mv dot
    """.split()
    )
    | api.REDUCTIONS
)
_ALIASING = frozenset(
    """
    cpu numpy to float double half long int view view_as squeeze unsqueeze t transpose permute contiguous expand
    expand_as reshape flatten narrow select cuda type detach data
    """.split()
)
_METADATA = frozenset("shape dtype device is_sparse is_cuda ndim layout".split())
_ALIASING_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in """
    squeeze unsqueeze transpose permute flatten ravel reshape t movedim moveaxis swapaxes swapdims diagonal narrow
    select split chunk unbind tensor_split hsplit vsplit dsplit expand_copy broadcast_to broadcast_tensors as_tensor
    asarray from_numpy real imag view_as_real view_as_complex atleast_1d atleast_2d atleast_3d detach clone_as
    """.split()
)
"""Functions whose result may share memory with an argument; the other functions of `torch` give new memory."""
_COPYING_ARRAYS = frozenset(
    f"numpy.{name}"
    for name in """
    concatenate stack vstack hstack array copy mean sum std var median max min argmax argmin argsort sort abs round
    clip exp log sqrt dot matmul argwhere nonzero where unique histogram percentile save savetxt savez allclose isnan
    """.split()
)
_COMPARING = frozenset("eq ne gt ge lt le equal allclose view_as expand_as type_as reshape_as".split())
_INERT = frozenset(f"builtins.{n}" for n in "print float int bool len str repr format".split())


class Use(IntEnum):
    """From harmless to dangerous."""

    READ = 0
    """Consumed: nothing can write through it afterwards."""
    ESCAPES = 1
    """Stored, returned, or passed to code that isn't shown."""
    WRITTEN = 2
    """Written in place."""


class Reads:
    """Classifies the uses of tensors that share memory with another."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def use(self, node: ast.expr, depth: int = _DEPTH) -> Use:
        """The worst that becomes of the value of an expression."""
        parent = self._kinds.index.parents[node]
        if isinstance(parent, ast.Attribute):
            return self._attribute(parent, depth)
        if isinstance(parent, ast.Subscript) and node is parent.value:
            return self.use(parent, depth) if isinstance(parent.ctx, ast.Load) else Use.WRITTEN
        if isinstance(parent, ast.AugAssign):
            return Use.WRITTEN if node is parent.target else Use.READ
        if isinstance(parent, (ast.List, ast.Tuple)) and isinstance(parent.ctx, ast.Load):
            return self._element(parent, depth)
        if isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.FormattedValue, ast.Subscript, ast.Slice)):
            return Use.READ
        if isinstance(parent, (ast.If, ast.While, ast.Assert)):
            return Use.READ
        if isinstance(parent, ast.Call):
            return self._argument(parent, node, depth)
        if isinstance(parent, ast.keyword):
            call = self._kinds.index.parents[parent]
            return Use.WRITTEN if parent.arg == "out" else self._argument(call, node, depth) if isinstance(call, ast.Call) else Use.ESCAPES
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name) and depth:
            return self._name(parent.targets[0], depth)
        return Use.ESCAPES

    def _attribute(self, attribute: ast.Attribute, depth: int) -> Use:
        call = self._kinds.index.parents[attribute]
        if not (isinstance(call, ast.Call) and call.func is attribute):
            return (
                Use.READ if attribute.attr in _METADATA else self.use(attribute, depth) if attribute.attr in {"data", "T"} else Use.ESCAPES
            )
        if attribute.attr.endswith("_") and not attribute.attr.endswith("__"):
            return Use.WRITTEN
        if attribute.attr in _ALIASING:
            return self.use(call, depth)
        return Use.READ if attribute.attr in _COPYING or attribute.attr in api.TENSOR_METHODS else Use.ESCAPES

    def _element(self, sequence: ast.List | ast.Tuple, depth: int) -> Use:
        """An element of a literal sequence is read when the sequence itself goes into a call that copies."""
        call = self._kinds.index.parents[sequence]
        if isinstance(call, ast.BinOp) and isinstance(call.op, ast.Mod):
            return Use.READ
        return self._argument(call, sequence, depth) if isinstance(call, ast.Call) else Use.ESCAPES

    def _argument(self, call: ast.Call, node: ast.expr, depth: int) -> Use:
        name = self._kinds.names.qualified(call.func) or ""
        if name in _ALIASING_FUNCTIONS:
            return self.use(call, depth)
        if name in _INERT or name in _COPYING_ARRAYS or self._computes(name):
            return Use.READ
        if isinstance(call.func, ast.Attribute) and call.func.attr in _COMPARING and not name:
            return Use.READ
        if isinstance(call.func, ast.Attribute) and self._is_tensor_method(call.func) and node is not call.func:
            return Use.READ
        receiver = self._kinds.fact(call.func)
        if receiver is not None and receiver.kind is Kind.MODULE and receiver.proven:
            return Use.READ if isinstance(receiver.origin, str) else self._forward_argument(receiver.origin, call, node, depth)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
            return Use.READ
        return Use.ESCAPES

    def _forward_argument(self, origin: ast.ClassDef | Symbol | None, call: ast.Call, node: ast.expr, depth: int) -> Use:
        """What the forward of a module of the file does with an argument."""
        forward = self._kinds.classes.method(origin, "forward") if isinstance(origin, ast.ClassDef) else None
        if forward is None or not depth:
            return Use.ESCAPES
        parameters = {a.arg: a for a in forward.args.args[1:]}
        name = next((n for n in parameters if self._kinds.functions.argument(call, forward, n) is node), None)
        if name is None or any(self._is_augmented(b) for b in self._kinds.index.scopes[forward].bindings[name]):
            return Use.ESCAPES
        uses = [use for use in self._kinds.uses(forward, name) if parameters[name] in self._kinds.flow.reaching(use)]
        return max((self.use(use, depth - 1) for use in uses), default=Use.READ)

    def _is_augmented(self, binding: ast.AST) -> bool:
        return isinstance(self._kinds.index.parents[binding], ast.AugAssign)

    def _computes(self, name: str) -> bool:
        """Whether a torch function gives new memory and leaves its arguments alone."""
        head, _, last = name.rpartition(".")
        if last.endswith("_"):
            return False
        if head in {"torch", "torch.linalg", "torch.special"}:
            return last[:1].islower() and name not in _ALIASING_FUNCTIONS
        return (head == "torch.nn.functional" and last not in {"dropout", "pad"}) or name.startswith("torchvision.utils.")

    def _is_tensor_method(self, func: ast.Attribute) -> bool:
        """An argument of a tensor's method is read, whether the method works in place or not."""
        if func.attr in {"set_", "swap_"}:
            return False
        owner = self._kinds.fact(func.value)
        return (
            owner is not None
            and owner.is_tensor
            and (func.attr.rstrip("_") in api.TENSOR_METHODS or func.attr in api.TENSOR_METHODS or func.attr in _COPYING)
        )

    def _name(self, target: ast.Name, depth: int) -> Use:
        """The worst of all reads that may see this binding of a local name."""
        scope = self._kinds.names.scope_of(target)
        owner = self._kinds.flow.function(target) or self._kinds.index.module
        if scope is None or scope.node is not owner:
            return Use.ESCAPES
        reads = [n for n in self._kinds.reads(target.id) if target in self._kinds.flow.reaching(n)]
        written = [n for n in self._kinds.index.all(ast.AugAssign) if isinstance(n.target, ast.Name) and n.target.id == target.id]
        if any(target in self._kinds.flow.reaching(n.target) for n in written if isinstance(n.target, ast.Name)):
            return Use.WRITTEN
        return max((self.use(read, depth - 1) for read in reads), default=Use.READ)
