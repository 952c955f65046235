"""Commands that run a test again."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.records.metric import Metric, Source
from pytest_ttnn_perf.records.observation import MetricObservation, Observation
from pytest_ttnn_perf.report.sentences import Rerun


def observed(source: Source, *, has_kernels: bool = False) -> Observation:
    metric = MetricObservation(Metric("time", "ns", source=source), (1.0,))
    return Observation("test_a.py::test_x[a b]", {"time": metric}, has_kernels=has_kernels)


@pytest.mark.parametrize("source", [Source.DEVICE, Source.REALTIME, Source.TRACY])
def test_ops_are_profiled_in_full_by_tracy(source: Source) -> None:
    assert Rerun("models").full_profile(observed(source)) == (
        "python -m tracy -r -p -v -m pytest 'models/test_a.py::test_x[a b]'"
    )


def test_kernels_are_profiled_by_ttlang_without_a_perf_dump() -> None:
    assert Rerun().full_profile(observed(Source.DEVICE, has_kernels=True)) == (
        "TTLANG_AUTO_PROFILE=1 TT_METAL_DEVICE_PROFILER=1 TT_METAL_PROFILER_MID_RUN_DUMP=1 "
        "pytest -s 'test_a.py::test_x[a b]'"
    )


@pytest.mark.parametrize("source", [Source.WALL, Source.REPLAY, Source.SIM])
def test_what_ran_on_no_device_has_no_profile(source: Source) -> None:
    assert Rerun().full_profile(observed(source)) is None
