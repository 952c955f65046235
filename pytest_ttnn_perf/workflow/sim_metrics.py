"""What tt-lang's simulator counted, as metrics that must not change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.metric import Better, Kind, Source
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.ttlang_sim import SimCounters

_PREFIX: Final = "sim_"
#: The simulator names a tensor that has no name after its address: another one in every run.
_NAMELESS: Final = re.compile(r"tensor_(?:[0-9]{1,4}|[0-9a-f]{4})")


def sim_metrics(counters: SimCounters) -> Iterator[MetricObservation]:
    """Yield every counter, in all and of each tensor that has a name: the same in every run.

    They tell that a kernel does something else than before, not whether it is slower.
    """
    for counter, count in counters.counters.items():
        yield _observed(counter, count)
    for tensor in counters.tensors:
        if not _NAMELESS.fullmatch(tensor.name):
            for counter, count in tensor.counters.items():
                yield _observed(counter, count, of=f"_{tensor.name}")


def _observed(counter: str, count: int, *, of: str = "") -> MetricObservation:
    name = f"{_PREFIX}{counter.removeprefix(_PREFIX)}{of}"
    kind = Kind.BYTES if counter.endswith("_bytes") else Kind.COUNT
    metric = recorded(name, kind, better=Better.EQUAL, source=Source.SIM)
    return MetricObservation(metric, (count,))
