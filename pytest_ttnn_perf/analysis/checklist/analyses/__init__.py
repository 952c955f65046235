"""The analyses of ``ttnn-perf analyze``, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.analyses.placements import L1, MESH, OVERLAP
from pytest_ttnn_perf.analysis.checklist.analyses.tensors import (
    DRAM,
    DTYPE,
    FIDELITY,
    LAYOUT,
    MEMORY,
    PADDING,
    RESHARDS,
    SHARDING,
)
from pytest_ttnn_perf.analysis.checklist.analyses.times import (
    BOTTLENECKS,
    CONV,
    CORES,
    DEVICES,
    HOST_OVERHEAD,
    MATMUL,
    QUEUES,
    TRACE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.analysis.checklist.analyses.analysis import Kind


_KINDS: Final = (
    DTYPE, FIDELITY, LAYOUT, PADDING, SHARDING, RESHARDS, MEMORY, HOST_OVERHEAD, TRACE, QUEUES,
    CONV, MATMUL, DEVICES, CORES, DRAM, BOTTLENECKS, MESH, L1, OVERLAP,
)  # fmt: skip
ANALYSES: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _KINDS}
