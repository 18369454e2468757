"""What operators and attributes make of tensors and numbers."""

from __future__ import annotations

from .facts import NUMBER, OTHER, SCALAR, TENSOR, TEXT, UNDECIDED, Fact, Kind


def tensor_attribute(owner: Fact, name: str) -> Fact | None:
    """What an attribute of a tensor holds."""
    if name in {"data", "grad"}:
        result = SCALAR if owner.kind is Kind.SCALAR_TENSOR else TENSOR
    elif name in {"T", "mT", "H", "mH", "real", "imag"}:
        result = TENSOR
    else:
        return OTHER if name in {"shape", "device", "dtype", "requires_grad", "grad_fn", "is_leaf", "is_cuda"} else None
    return result if owner.proven else result.likely()


def arithmetic(left: Fact | None, right: Fact | None) -> Fact | None:
    """What an operator gives for two operands."""
    if left is UNDECIDED or right is UNDECIDED:
        return right if left is UNDECIDED else left
    if left is None or right is None:
        known = left or right
        # Whatever stands on the left may define the operator itself; a tensor there is sure to give a tensor.
        return None if known is None or not known.is_tensor else TENSOR if known is left and known.proven else TENSOR.likely()
    if left.kind is Kind.TEXT:
        return TEXT
    kinds = {left.kind, right.kind}
    if kinds == {Kind.NUMBER}:
        return NUMBER
    if not kinds <= {Kind.NUMBER, Kind.TENSOR, Kind.SCALAR_TENSOR, Kind.PARAMETER}:
        return None
    scalar = kinds <= {Kind.SCALAR_TENSOR, Kind.NUMBER}
    return Fact(Kind.SCALAR_TENSOR if scalar else Kind.TENSOR, proven=left.proven and right.proven)
