"""Groups of ops as rows of cells: the same in a run record and in the file beside a baseline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.op_groups import OpGroup, OpGroups
from pytest_ttnn_perf.model.ops import Signature, Tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.encoding.value import Value

#: What the cells of a row are.
COLUMNS: Final = (
    "op", "inputs", "outputs", "cores", "fidelity", "settings", "count", "total_ns", "median_ns",
)  # fmt: skip
#: Ends a shape of which the capture does not tell the part that is padding.
_UNKNOWN: Final = "?"
_NOTHING: Final = "-"
_BETWEEN: Final = "; "
_DIMENSION: Final = re.compile(r"(\d{1,18})(?:\[(\d{1,18})\])?")


def encode_groups(ops: OpGroups) -> dict[str, object]:
    """Encode groups as plain JSON."""
    return {
        "time": ops.kernel_time,
        "columns": list(COLUMNS),
        "rows": [group_cells(group) for group in ops.groups],
    }


def decode_groups(value: Value) -> OpGroups:
    """Decode groups.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    rows = value.field("rows").array()
    return OpGroups(value.field("time").string(), tuple(decode_group(row) for row in rows))


def group_cells(group: OpGroup) -> list[str | float | None]:
    """Return a group as a row."""
    signature = group.signature
    return [
        signature.op,
        _operands_text(signature.inputs),
        _operands_text(signature.outputs),
        group.cores,
        group.fidelity,
        group.settings,
        group.count,
        group.total_ns,
        group.median_ns,
    ]


def decode_group(row: Value) -> OpGroup:
    """Decode a row.

    Raises:
        DecodeError: a cell is missing, or not what it should be.
    """
    cells = list(row.array())
    if len(cells) != len(COLUMNS):
        raise row.refusal(f"a row of {len(COLUMNS)} cells")
    op, inputs, outputs, cores, fidelity, settings, count, total, median = cells
    for time in (total, median):
        if time.number() < 0:
            raise time.refusal("a time of at least 0")
    return OpGroup(
        Signature(op.string(), _operands(inputs), _operands(outputs)),
        None if cores.raw is None else cores.integer(),
        None if fidelity.raw is None else fidelity.string(),
        settings.string(),
        count.integer(at_least=1),
        total.number(),
        median.number(),
    )


def _operands_text(tensors: tuple[Tensor, ...]) -> str:
    return _BETWEEN.join(map(_tensor_text, tensors))


def _tensor_text(tensor: Tensor) -> str:
    """Return e.g. ``1x1x32[1]x4096 TILE BFLOAT16 L1_INTERLEAVED``: 1, padded to 32."""
    formats = (tensor.layout, tensor.dtype, tensor.memory)
    words = ["_".join(word.replace(";", " ").split()) or _NOTHING for word in formats]
    return " ".join([_shape_text(tensor), *words])


def _shape_text(tensor: Tensor) -> str:
    padded, logical = tensor.padded, tensor.logical
    if logical is None or len(logical) != len(padded):
        return "x".join(map(str, padded)) + _UNKNOWN
    dimensions = zip(padded, logical, strict=True)
    return "x".join(f"{p}" if p == n else f"{p}[{n}]" for p, n in dimensions) or _NOTHING


def _operands(value: Value) -> tuple[Tensor, ...]:
    text = value.string()
    return tuple(_tensor(part, value) for part in text.split(_BETWEEN)) if text else ()


def _tensor(text: str, value: Value) -> Tensor:
    shape, *formats = text.split(" ")
    dimensions = [_DIMENSION.fullmatch(d) for d in shape.removesuffix(_UNKNOWN).split("x") if d]
    if shape == _NOTHING:
        dimensions = []
    if len(formats) != 3 or None in dimensions:
        raise value.refusal("operands such as '1x1x32[1]x64 TILE BFLOAT16 L1_INTERLEAVED'")
    found = [match for match in dimensions if match is not None]
    layout, dtype, memory = ("" if word == _NOTHING else word for word in formats)
    logical = tuple(int(match[2] or match[1]) for match in found)
    return Tensor(
        padded=tuple(int(match[1]) for match in found),
        logical=None if shape.endswith(_UNKNOWN) else logical,
        layout=layout,
        dtype=dtype,
        memory=memory,
    )
