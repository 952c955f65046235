"""The simulator's counters: every one is a metric that must not change."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.readers.device_csv import sim_metrics
from pytest_ttnn_perf.analysis.readers.ttlang import SimCounters, SimTensor
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation


def names(*tensors: str) -> list[str]:
    counters = SimCounters({}, tuple(SimTensor(name, {"tiles_read": 1}) for name in tensors))
    return [found.metric.name for found in sim_metrics(counters)]


def test_every_counter_in_all_and_of_every_tensor() -> None:
    counters = SimCounters(
        {"kernels": 12, "sim_ticks": 780, "dram_read_bytes": 4096},
        (SimTensor("a", {"tiles_read": 0}), SimTensor("W", {"dram_read_bytes": 64})),
    )

    assert list(sim_metrics(counters)) == [
        MetricObservation(Metric(name, unit, Better.EQUAL, kind, Source.SIM), (count,))
        for name, unit, kind, count in [
            ("sim_kernels", "", Kind.COUNT, 12),
            ("sim_ticks", "", Kind.COUNT, 780),
            ("sim_dram_read_bytes", "B", Kind.BYTES, 4096),
            ("sim_tiles_read_a", "", Kind.COUNT, 0),
            ("sim_dram_read_bytes_W", "B", Kind.BYTES, 64),
        ]
    ]


@pytest.mark.parametrize("name", ["tensor_7", "tensor_9310", "tensor_b4f0"])
def test_a_tensor_that_is_called_after_its_address_counts_in_all_only(name: str) -> None:
    assert names("a", name) == ["sim_tiles_read_a"]
