"""Operands as text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import Signature, Tensor


@lru_cache(maxsize=1024)
def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape.

    >>> shape_text((1, 1, 32, 4096))
    '1x1x32x4096'
    """
    return "x".join(map(str, shape))


def calling_shape(signature: Signature) -> str:
    """Return the shape that tells an op from others of its kind: that of what goes in first.

    For a matrix product that is not enough: all projections of a layer take the same.
    """
    operands = signature.inputs or signature.outputs
    if not operands:
        return ""
    first = shape_text(_logical(operands[0]))
    if "Matmul" in signature.op and len(operands) > 1:
        return f"{first} @ {shape_text(_logical(operands[1])[-2:])}"
    return first


def operands_text(signature: Signature) -> str:
    """Return all operands in one line; ``32[1]`` is a dimension of 1 that is padded to 32."""
    sides = (signature.inputs, signature.outputs)
    return " -> ".join(", ".join(map(_tensor, side)) for side in sides if side)


def _logical(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded


def _tensor(tensor: Tensor) -> str:
    logical = _logical(tensor)
    shape = shape_text(logical)
    if logical != tensor.padded:
        both = zip(tensor.padded, logical, strict=False)
        shape = "x".join(f"{n}" if n == m else f"{n}[{m}]" for n, m in both)
    return " ".join(filter(None, [shape, tensor.dtype, tensor.layout, tensor.memory]))
