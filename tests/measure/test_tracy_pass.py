"""What Tracy's report holds between the signposts of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_ttnn_perf.core.assignment import signposts_of
from pytest_ttnn_perf.core.ops import Op, OpTable, Signpost, Unread
from pytest_ttnn_perf.core.settings import Checklist, Settings
from pytest_ttnn_perf.plugin.workers import _read_report
from tests.analysis.ops.tables import MATMUL, op, table

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


def test_a_call_in_which_an_op_has_no_time_is_no_data_and_another_test_is_none_the_worse() -> None:
    calls = [*measured(TEST, [op(MATMUL, 40)]), *measured("a.py::other", [op(MATMUL, 40)])]
    broken = replace(capture(*calls), unread=(Unread(9, "no kernel duration", signposts=1),))
    found = dict(_read_report(broken, Settings(checklist=Checklist.OFF)))
    (nothing,) = found[TEST].metrics.values()
    assert (nothing.metric.name, nothing.samples) == ("device_kernel_time", ())
    assert nothing.note == (
        "1 of 2 device ops has no kernel duration, first in line 9 of Tracy's report"
    )
    assert found["a.py::other"].metrics["device_kernel_time"].samples == (40,)
