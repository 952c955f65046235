"""Time spent on changing layouts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.residency import round_trips
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.conversions import neighbours
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report

_CONVERSION: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)
_ON_ROWS: Final = re.compile(r"arg_?max|top_?k|sampling|pool|grid_?sample|upsample", re.IGNORECASE)


@rule("TTP203", "layout-conversions", Severity.WARNING, Input.OPS, Input.REPORT)
def layout_conversions(
    step: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    trips: Limit = Limit(0, "round trips", "a report tells no times, so each is named"),
) -> Answer:
    """Time goes into changing layouts.

    ## What it finds
    The part of a step in ops that turn row-major tensors into tiles and back: tilize, untilize,
    to_layout. The first and the last op of a step do not count, nor do those before and after ops
    that work on rows by nature: argmax, top-k, pooling, grid sampling. Of a report, which tells no
    times, round trips: a conversion right after the one that it undoes.

    ## Why it matters
    A conversion computes nothing. Each reads and writes a whole tensor.

    ## What to do
    Keep tensors in one layout from op to op: convert weights and tables once when they are loaded,
    ask for the layout an op works in, and remove conversions between ops that both take tiles.

    ## What it saves
    The time of the conversions.

    ## When it is no problem
    A model that is fed with row-major images has to convert them once.

    ## Where it looks
    OP CODE and the kernel time of the op table, on the slowest device. Without a table, the layouts
    of the tensors that a report database or a captured graph follows from call to call.
    """
    if step is None:
        assert report is not None
        return _round_trips(report, trips)
    found = _avoidable(critical_ops(step))
    took = sum(found.values())
    conversions = counted(len(found), "layout conversion")
    return check_savings(
        step,
        found,
        share,
        sentence=f"{percent(took / (step_ns(step) or 1.0))} of a step goes into {conversions}",
        arithmetic=f"the time of {conversions}: {microseconds(took)}",
    )


def _round_trips(report: Report, limit: Limit) -> Answer:
    found = [
        trip.told((trip.before.layout, trip.there.layout, trip.after.layout))
        for trip in round_trips(report)
        if trip.before.layout == trip.after.layout != trip.there.layout
    ]
    trips = counted(len(found), "round trip")
    sentence = f"{trips} of a layout, with nothing between"
    return limit.at_most(float(len(found)), sentence, map(Evidence, found))


def _avoidable(ops: Sequence[Placed]) -> dict[int, float]:
    """Return the times of conversions, without those that begin or end a step or serve rows."""
    signatures = [placed.op.signature for placed in ops]
    some_on_rows = any(_ON_ROWS.search(op) for op in {signature.op for signature in signatures})
    found = {}
    for at, (row, op) in enumerate(ops[1:-1], start=1):
        if _CONVERSION.search(op.signature.op):
            places = neighbours(at, len(ops), signatures.__getitem__) if some_on_rows else ()
            beside = (short_code(signatures[place].op) for place in places if place is not None)
            if not any(map(_ON_ROWS.search, beside)):
                found[row] = op.kernel_ns
    return found
