"""Operands on a mesh of devices, as a report database tells them."""

from __future__ import annotations

from pytest_ttnn_perf.records.ttnn_report import Operation

NO_DATA_PARALLELISM = (
    "no data parallelism: neither the fact data_parallel nor an input that is sharded on its batch"
)
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
