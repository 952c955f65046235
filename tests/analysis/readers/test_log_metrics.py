"""A raw device log: the kernel time of its slowest device, or why there is none."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.readers.device_csv import DeviceLog, ProgramTime, log_metrics
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation

TIME = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, Source.DEVICE)
COUNT = Metric("program_count", "", Better.LOWER, Kind.COUNT, Source.DEVICE)


def ran(
    number: int, ns: float | None, *, device: int = 0, trace: int | None = None,
    replay: int | None = None,
) -> ProgramTime:  # fmt: skip
    return ProgramTime(device, number, trace, replay, 5, ns, 1)


def observed(*times: float, programs: int) -> list[MetricObservation]:
    return [MetricObservation(TIME, times), MetricObservation(COUNT, (programs,))]


def nothing(why: str) -> list[MetricObservation]:
    return [MetricObservation(TIME, (), note=f"log.csv: {why}")]


@pytest.mark.parametrize(
    ("programs", "expected"),
    [
        ([ran(1, 10.0), ran(2, 20.0), ran(1, 12.0)], observed(42.0, programs=3)),
        ([ran(1, 10.0), ran(2, 20.0), ran(1, 90.0, device=1)], observed(90.0, programs=2)),
        (
            [
                ran(7, 9_000.0), ran(7, 9_000.0, trace=1),
                ran(1, 10.0, trace=1, replay=1), ran(2, 20.0, trace=1, replay=1),
                ran(2, 21.0, trace=1, replay=2), ran(1, 10.0, trace=1, replay=2),
            ],
            observed(30.0, 31.0, programs=2),
        ),
        (
            [
                ran(1, 10.0, trace=1, replay=1), ran(1, 30.0, trace=1, replay=2),
                ran(1, 20.0, device=1, trace=1, replay=1),
                ran(1, 20.0, device=1, trace=1, replay=2),
            ],
            observed(20.0, 30.0, programs=1),
        ),
        (
            [ran(1, 10.0, trace=1, replay=1), ran(5, 30.0, trace=2, replay=1)],
            observed(40.0, programs=2),
        ),
        (
            [ran(1, 10.0), ran(2, None, device=3)],
            nothing("program 2 on device 3 lacks a marker: the profiler dropped it, or the log "
                    "is cut"),
        ),
        (
            [
                ran(1, 10.0, trace=4, replay=1), ran(2, 10.0, trace=4, replay=1),
                ran(1, 10.0, trace=4, replay=2),
            ],
            nothing("the replays of trace 4 on device 0 ran different programs"),
        ),
        ([], nothing("no kernel ran")),
    ],
    ids=["without traces", "devices side by side", "every replay is a sample",
         "slowest device of each replay", "traces replayed together", "a marker is missing",
         "other programs in a replay", "no kernels"],
)  # fmt: skip
def test_the_kernel_time_of_a_log(
    programs: list[ProgramTime], expected: list[MetricObservation]
) -> None:
    log = DeviceLog("wormhole_b0", 1000.0, 64, 99, tuple(programs))
    assert list(log_metrics(log, file="log.csv")) == expected
