"""Small report databases for rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.readers.report_db import Edge, Operation, Report, TensorRecord

if TYPE_CHECKING:
    from collections.abc import Iterable


def record(
    number: int,
    *shape: int,
    dtype: str = "BFLOAT16",
    layout: str = "TILE",
    memory: str | None = "DRAM_INTERLEAVED",
) -> TensorRecord:
    """Return a tensor; one without memory is on the host."""
    return TensorRecord(number, shape, dtype, layout, memory, None, 1, 0)


def report(
    operations: Iterable[Operation],
    tensors: Iterable[TensorRecord] = (),
    edges: Iterable[tuple[int, int, int]] = (),
) -> Report:
    """Return a report; ``edges`` are tensor, producer and consumer."""
    return Report(
        devices=(),
        operations=tuple(operations),
        tensors={each.id: each for each in tensors},
        edges=tuple(Edge(*edge) for edge in edges),
        comparisons=(),
        errors=(),
    )


__all__ = ["COPY", "Operation", "Report", "linear", "placed", "record", "report"]

COPY = "PlacementReplicate()"


def placed(mesh: str, *placements: str) -> str:
    """Return a tensor as an argument says it, e.g. on a mesh of "1, 2"."""
    return (
        "ttnn.Tensor(shape=Shape([4, 1, 32, 64]), dtype=DataType.BFLOAT16, device_id=1, "
        f"mesh_coords=['MeshCoordinate([0])'], distribution_shape=MeshShape([{mesh}]), "
        f"placements={list(placements)})"
    )


def linear(number: int, activation: str, weights: str, name: str = "ttnn.linear") -> Operation:
    """Return a call with two operands by position."""
    return Operation(number, name, arguments={"0": activation, "1": weights})
