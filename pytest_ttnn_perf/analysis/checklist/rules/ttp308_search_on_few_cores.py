"""Searches along rows that run on few cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, op_name
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from pytest_ttnn_perf.analysis.checklist.parallelism import (
    NOT_TOLD,
    available_cores,
    ops_on_cores,
    searches,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report

#: A search in fewer tiles is short, and two steps are slower than one.
_LEAST_TILES: Final = 16


@rule("TTP308", "search-on-few-cores", Severity.WARNING, Input.OPS)
def search_on_few_cores(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    used: Limit = Limit(0.5, "of the cores with work", "as TTP305"),
    shortest_us: Limit = Limit(5, "µs", "launching takes a good part of shorter ops"),
) -> Answer:
    """Sampling, or another search along rows, runs on few cores.

    ## What it finds
    Reductions, argmax, top-k, sorting and cumulative sums that read many tiles on less than half of
    the cores that these would keep busy. They are cut by rows: a vocabulary in one row of tiles is
    searched by a single core.

    ## Why it matters
    At the end of a decode step, sampling from the vocabulary can take as long as all layers.

    ## What to do
    Search in two steps: reshape, or shard by width, so that each core has a part of the vocabulary,
    then search the few results. Where the largest value and its place are both wanted, take the
    value from the place instead of reducing once more. Sample on the host if it waits anyway.

    ## What it saves
    Time × (1 − cores ÷ possible cores), where possible are those that there are, or as many as the
    op reads tiles; no op gets shorter than 2 µs.

    ## When it is no problem
    Searches in few tiles, such as experts of a router, do not count: fewer than a tile for each of
    16 cores.

    ## Where it looks
    CORE COUNT, AVAILABLE WORKER CORE COUNT and the kernel time of the op table, on the slowest
    device.
    """
    available = available_cores(step, report)
    if not available:
        return Answer.not_measured(NOT_TOLD)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    judged = [
        each
        for each in ops_on_cores(step, available, shortest_us=shortest_us.value)
        if searches(each.op.signature)
    ]
    if not judged:
        return Answer.not_applicable("no search along rows that takes long enough")
    few = {
        each.row: each
        for each in judged
        if each.part < used.value and each.possible >= _LEAST_TILES
    }
    took = sum(each.op.kernel_ns for each in few.values())
    saved = {row: each.saved_ns for row, each in few.items()}
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(few), 'search')} along rows of {microseconds(took)} on few cores",
        arithmetic=f"Σ time × (1 − cores ÷ possible): {microseconds(took)} → "
        f"{microseconds(took - sum(saved.values()))}",
        name=lambda placed: (
            f"{op_name(placed.op)} on {few[placed.row].cores} of "
            f"{counted(few[placed.row].possible, 'core')}"
        ),
    )
