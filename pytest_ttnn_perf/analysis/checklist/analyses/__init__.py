"""The analyses of ``ttnn-perf analyze``, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.analyses.compute import BOTTLENECKS, CONV, CORES, MATMUL
from pytest_ttnn_perf.analysis.checklist.analyses.formats import DTYPE, FIDELITY, LAYOUT, PADDING
from pytest_ttnn_perf.analysis.checklist.analyses.host import DEVICES, HOST_OVERHEAD, QUEUES, TRACE
from pytest_ttnn_perf.analysis.checklist.analyses.memory import DRAM, MEMORY, RESHARDS, SHARDING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.analysis.checklist.analyses.analysis import Kind


_KINDS: Final = (
    DTYPE, FIDELITY, LAYOUT, PADDING, SHARDING, RESHARDS, MEMORY, HOST_OVERHEAD, TRACE, QUEUES,
    CONV, MATMUL, DEVICES, CORES, DRAM, BOTTLENECKS,
)  # fmt: skip
ANALYSES: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _KINDS}
