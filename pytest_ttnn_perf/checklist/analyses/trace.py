"""What runs from a trace, and whether its replays are alike."""

from __future__ import annotations

from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import by_time
from pytest_ttnn_perf.checklist.executions import differences, executions
from pytest_ttnn_perf.checklist.op_times import described, device_ops
from pytest_ttnn_perf.checklist.rules.ttp402_trace_not_used import TraceNotUsed
from pytest_ttnn_perf.checklist.rules.ttp403_dynamic_shapes import DynamicShapes
from pytest_ttnn_perf.model.analysis import Row, Section
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.model.ops import Op, OpTable
    from pytest_ttnn_perf.model.subject import Subject

#: How many executions that differ are named.
_NAMED: Final = 3


def _look(subject: Subject) -> Numbers:
    assert subject.ops is not None
    table = subject.ops
    ops = list(device_ops(table))
    outside = [op for op in ops if op.trace is None]
    partly = outside if len(outside) < len(ops) else []
    return judged(
        subject,
        {"waiting without a trace": TraceNotUsed, "executions unlike the first": DynamicShapes},
        by_time("ops", ops, _origin),
        _executions(table),
        by_time(
            "ops that are in no trace", partly, described, whole=sum(op.kernel_ns for op in ops)
        ),
        notes=tuple(f"differs: {each}" for each in islice(differences(table), _NAMED)),
    )


def _origin(op: Op) -> str:
    return "not traced" if op.trace is None else f"trace {op.trace}, device {op.device}"


def _executions(table: OpTable) -> Section:
    """Return the median kernel time of what ran at least twice."""
    times = table.columns.kernel_ns
    rows = (
        Row(
            what.rpartition(", ")[0],
            median(sum(times[at] for at in run.places) for run in runs),
            count=len(runs),
        )
        for what, runs in sorted(executions(table).items())
    )
    return Section("executions, median time of one", "ns", tuple(rows))


TRACE: Final = Kind("trace", "what runs from a trace, and its replays", (Input.OPS,), _look)
