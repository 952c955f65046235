"""What a profiler saw, as metrics: a sample per iteration, and names where the report fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.device_csv import gated_ops
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Artifact, MetricObservation
from pytest_ttnn_perf.measure.devices import profile_artifact
from tests.analysis.ops.tables import MATMUL, NORM, RESHARD, op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.ops import Op
    from pytest_ttnn_perf.measure.profilers import Chips


def iteration(*times_ns: float, chip: int = 0) -> Chips:
    return {chip: list(times_ns)}


def on_chips(**times_ns: list[float]) -> Chips:
    """Return programs by chip, ``c0`` and so on."""
    return {int(chip[1:]): times for chip, times in times_ns.items()}


def time(*samples: float, of: str = "", source: Source = Source.DEVICE) -> MetricObservation:
    name = f"device_kernel_time{of}"
    return MetricObservation(Metric(name, "ns", Better.LOWER, Kind.TIME, source), samples)


def count(number: float, source: Source = Source.DEVICE) -> MetricObservation:
    return MetricObservation(Metric("op_count", "", Better.LOWER, Kind.COUNT, source), (number,))


def nothing(why: str, source: Source = Source.DEVICE) -> Artifact:
    metric = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, source)
    return Artifact((MetricObservation(metric, (), note=why),))


def artifact(
    *iterations: Chips, report: list[Op] | None = None, source: Source = Source.DEVICE
) -> Artifact:
    return profile_artifact(iterations, source, None if report is None else table(report))


@pytest.mark.parametrize("source", [Source.DEVICE, Source.REALTIME])
def test_a_sample_per_iteration_and_the_programs_of_one(source: Source) -> None:
    found = artifact(iteration(10, 20.5), iteration(11, 20), iteration(9, 20), source=source)
    assert found == Artifact((time(30.5, 31, 29, source=source), count(2, source)))


def test_chips_run_side_by_side_and_the_slowest_counts() -> None:
    found = artifact(
        on_chips(c0=[10, 10], c1=[30]), on_chips(c0=[10, 25], c1=[30]), on_chips(c1=[5, 5])
    )
    assert found == Artifact((time(30, 35, 10), count(2)))


def test_iterations_of_different_length_are_told_as_such() -> None:
    assert artifact(iteration(1, 2), iteration(1), iteration(1, 2)) == nothing(
        "the iterations ran different numbers of programs: 2, 1, 2"
    )


@pytest.mark.parametrize("off_ns", [0.0, 1.0, -1.0])
def test_the_last_rows_of_a_report_are_the_last_iteration(off_ns: float) -> None:
    last = [op(MATMUL, 40 + off_ns), op(NORM, 20), op(NORM, 21)]
    found = artifact(
        iteration(41, 20, 20),
        iteration(40, 20, 21),
        report=[op(RESHARD, 500), op(MATMUL, 41), op(NORM, 20), op(NORM, 20), *last],
    )
    categories = (time(40 + off_ns, of="_matmul"), time(41, of="_norm"))
    told = Artifact((time(81, 81), count(3), *categories), ops=gated_ops(table(last)))
    assert replace(found, table=None) == told
    assert found.table is not None
    assert [each._replace(number=0) for each in found.table] == last


@pytest.mark.parametrize(
    "report",
    [
        [],
        [op(MATMUL, 40)],
        [op(MATMUL, 40), op(NORM, 21.5)],
        [op(MATMUL, 38.5), op(NORM, 20)],
        [op(NORM, 20), op(MATMUL, 40)],
        [op(MATMUL, 40, device=1), op(NORM, 20, device=1)],
        [op(MATMUL, 40), op(NORM, 20, device=1)],
    ],
    ids=["empty", "shorter", "slower", "faster", "other order", "other chip", "half on another"],
)
def test_a_report_of_something_else_gives_no_names(report: list[Op]) -> None:
    assert artifact(iteration(40, 20), report=report) == Artifact((time(60), count(2)))
