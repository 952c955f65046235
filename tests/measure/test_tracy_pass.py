"""What Tracy's report holds between the signposts of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_ttnn_perf.core.assignment import signposts_of
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.core.ops import Op, OpTable, Signpost, Unread
from pytest_ttnn_perf.core.settings import Checklist, Settings
from pytest_ttnn_perf.plugin.workers import _read_report
from tests.analysis.ops.tables import MATMUL, NORM, RESHARD, op, table

if TYPE_CHECKING:
    from collections.abc import Sequence


TEST = "models/test_llama.py::test_decode"


def capture(*content: Op | str) -> OpTable:
    """Return a capture of ops with signposts between them."""
    ops: list[Op] = []
    posts: list[Signpost] = []
    for each in content:
        if isinstance(each, str):
            posts.append(Signpost(each, len(ops)))
        else:
            ops.append(each)
    return replace(table(ops), signposts=tuple(posts))


def measured(test: str, *iterations: Sequence[Op], run: int = 1) -> list[Op | str]:
    """Return the measured calls of a test, each between its signposts."""
    content: list[Op | str] = []
    for number, ops in enumerate(iterations):
        begin, end = signposts_of(test, run=run, iteration=number)
        content += [begin, *ops, end]
    return content


def told(*content: Op | str) -> dict[str, Observation]:
    return dict(_read_report(capture(*content), Settings(checklist=Checklist.OFF)))


def metric(name: str, *samples: float, note: str | None = None) -> MetricObservation:
    kind, unit = (Kind.COUNT, "") if name == "op_count" else (Kind.TIME, "ns")
    return MetricObservation(
        Metric(name, unit, Better.LOWER, kind, Source.TRACY), samples, note=note
    )


def nothing(test: str, why: str) -> dict[str, Observation]:
    name = "device_kernel_time"
    return {test: Observation(test, {name: metric(name, note=why)})}


def kernel_times(found: dict[str, Observation]) -> dict[str, tuple[float, ...]]:
    return {test: each.metrics["device_kernel_time"].samples for test, each in found.items()}


def test_each_window_is_a_sample() -> None:
    calls = [[op(MATMUL, 40), op(NORM, 20)], [op(MATMUL, 42), op(NORM, 20)]]
    found = told(op(RESHARD, 900), *measured(TEST, *calls), op(RESHARD, 900))
    expected = [
        metric("device_kernel_time", 60, 62),
        metric("op_count", 2),
        metric("device_kernel_time_matmul", 40, 42),
        metric("device_kernel_time_norm", 20, 20),
    ]
    ops = found[TEST].ops
    assert ops is not None
    assert sorted(each.total_ns for each in ops.groups) == [20, 41]
    assert found == {
        TEST: Observation(TEST, {each.metric.name: each for each in expected}, ops=ops)
    }
    assert list(found[TEST].metrics) == [each.metric.name for each in expected]


def test_a_call_in_which_an_op_has_no_time_is_no_data_and_another_test_is_none_the_worse() -> None:
    calls = [*measured(TEST, [op(MATMUL, 40)]), *measured("a.py::other", [op(MATMUL, 40)])]
    broken = replace(capture(*calls), unread=(Unread(9, "no kernel duration", signposts=1),))
    found = dict(_read_report(broken, Settings(checklist=Checklist.OFF)))
    why = "1 of 2 device ops has no kernel duration, first in line 9 of Tracy's report"
    assert found[TEST] == nothing(TEST, why)[TEST]
    assert kernel_times(found)["a.py::other"] == (40,)


BEGIN, END = signposts_of(TEST, run=1, iteration=0)
