"""Ops as people call them, the same wherever one is named."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.conversions import conversion_text, is_conversion
from pytest_ttnn_perf.analysis.ops.settings import function_in, settings_in
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Signature, Tensor


#: Codes of ops that are many: which, stands in their attributes.
ELEMENTWISE: Final = ("Unary", "Binary", "Ternary")
#: Other ops of which a setting tells what they compute.
_COMPUTES: Final = {"Reduce": "math_op", "Pool2D": "pool_type"}


@lru_cache(maxsize=4096)
def op_name(signature: Signature, attributes: str = "") -> str:
    """Return what an op is, computes and works on; of a conversion, from what to what.

    >>> from pytest_ttnn_perf.records.ops import Signature
    >>> op_name(Signature("BinaryNgDeviceOperation"), "binary_op_type=BinaryOpType::MUL")
    'BinaryNg MUL'
    """
    words = [op_and_function(signature.op, attributes), calling_shape(signature, attributes)]
    if is_conversion(signature.op):
        words.append(conversion_text(signature, attributes))
    return " ".join(filter(None, words))


def op_and_function(op: str, attributes: str) -> str:
    """Return the code of an op, and what it computes where that is many things."""
    code = short_code(op)
    if code.startswith(ELEMENTWISE):
        return f"{code} {function_in(attributes)}".strip()
    if code in _COMPUTES:
        return f"{code} {dict(settings_in(attributes)).get(_COMPUTES[code], '')}".strip()
    return code


@lru_cache(maxsize=1024)
def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape.

    >>> shape_text((1, 1, 32, 4096))
    '1x1x32x4096'
    """
    return "x".join(map(str, shape))


def calling_shape(signature: Signature, attributes: str = "") -> str:
    """Return the shape that tells an op from others of its kind: that of what goes in first.

    For a matrix product that is not enough: all projections of a layer take the same. What a
    convolution or a pooling takes is flattened; its attributes tell the image.
    """
    operands = signature.inputs or signature.outputs
    if not operands:
        return ""
    first = _shape(operands[0])
    image = "_hw" in attributes or "input_tensor_shape" in attributes
    if image and (shape := _image_shape(dict(settings_in(attributes)), first)):
        return shape
    if "Matmul" in signature.op and len(operands) > 1:
        return f"{shape_text(first)} @ {shape_text(_shape(operands[1])[-2:])}"
    return shape_text(first)


def operands_text(signature: Signature) -> str:
    """Return all operands in one line; ``32[1]`` is a dimension of 1 that is padded to 32."""
    sides = (signature.inputs, signature.outputs)
    return " -> ".join(", ".join(map(_tensor, side)) for side in sides if side)


def _image_shape(settings: dict[str, str], flat: tuple[int, ...]) -> str:
    """Return the shape of the image that was flattened, "" where it is not told."""
    if "input_tensor_shape" in settings:
        return settings["input_tensor_shape"]
    size, batch = settings.get("input_hw"), settings.get("batch_size", "1")
    return f"{batch}x{size}x{flat[-1]}" if size and flat else ""


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded


def _tensor(tensor: Tensor) -> str:
    logical = _shape(tensor)
    shape = shape_text(logical)
    if logical != tensor.padded:
        both = zip(tensor.padded, logical, strict=False)
        shape = "x".join(f"{n}" if n == m else f"{n}[{m}]" for n, m in both)
    return " ".join(filter(None, [shape, tensor.dtype, tensor.layout, tensor.memory]))
