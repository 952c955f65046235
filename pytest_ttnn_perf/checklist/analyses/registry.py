"""Every analysis there is, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.bottlenecks import BOTTLENECKS
from pytest_ttnn_perf.checklist.analyses.conv import CONV
from pytest_ttnn_perf.checklist.analyses.cores import CORES
from pytest_ttnn_perf.checklist.analyses.devices import DEVICES
from pytest_ttnn_perf.checklist.analyses.dram import DRAM
from pytest_ttnn_perf.checklist.analyses.dtype import DTYPE
from pytest_ttnn_perf.checklist.analyses.fidelity import FIDELITY
from pytest_ttnn_perf.checklist.analyses.host_overhead import HOST_OVERHEAD
from pytest_ttnn_perf.checklist.analyses.layout import LAYOUT
from pytest_ttnn_perf.checklist.analyses.matmul import MATMUL
from pytest_ttnn_perf.checklist.analyses.memory import MEMORY
from pytest_ttnn_perf.checklist.analyses.padding import PADDING
from pytest_ttnn_perf.checklist.analyses.queues import QUEUES
from pytest_ttnn_perf.checklist.analyses.reshards import RESHARDS
from pytest_ttnn_perf.checklist.analyses.sharding import SHARDING
from pytest_ttnn_perf.checklist.analyses.trace import TRACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.checklist.analyses.kind import Kind

_KINDS: Final = (
    DTYPE, FIDELITY, LAYOUT, PADDING, SHARDING, RESHARDS, MEMORY, HOST_OVERHEAD, TRACE, QUEUES,
    CONV, MATMUL, DEVICES, CORES, DRAM, BOTTLENECKS,
)  # fmt: skip
ANALYSES: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _KINDS}
