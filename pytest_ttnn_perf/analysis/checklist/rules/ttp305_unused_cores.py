"""Ops that run on few of the cores that they have work for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import none_long_enough
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, op_name
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from pytest_ttnn_perf.analysis.checklist.parallelism import (
    NOT_TOLD,
    available_cores,
    ops_on_cores,
    searches,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.conversions import is_conversion
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.parallelism import OnCores
    from pytest_ttnn_perf.records.ops import Op, OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report

#: Shorter conversions are for TTP203 and TTP302 alone.
_LONG_CONVERSION_NS: Final = 20_000.0


@rule("TTP305", "unused-cores", Severity.WARNING, Input.OPS)
def unused_cores(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    used: Limit = Limit(
        0.5, "of the cores with work", "tt-perf-report marks ops on less than half of the cores"
    ),
    shortest_us: Limit = Limit(5, "µs", "launching takes a good part of shorter ops"),
) -> Answer:
    """Ops run on few of the cores that they have work for.

    ## What it finds
    Each op of a step that runs on less than half of the cores that its tiles would keep busy: those
    that there are, or as many as it gives tiles. Of an op whose output is sharded in L1, the cores
    that hold a shard count.

    ## Why it matters
    An op on one core takes up to a hundred times as long as it has to.

    ## What to do
    Give the ops that are named more cores: more shards in their memory config, or a program config
    with a larger `compute_with_storage_grid_size`. A norm of few rows runs on one core unless its
    input is sharded by width.

    ## What it saves
    Time × (1 − cores ÷ possible cores), but no op gets shorter than 2 µs, a norm than 5 µs, and
    none than reading its operands takes at 75 % of the DRAM bandwidth.

    ## When it is no problem
    Small tensors have too few tiles for all cores, which the rule takes into account. Not counted
    are ops that take very little time, collectives, which wait for links, matmuls with DRAM-sharded
    weights, whose number of cores follows the banks of DRAM, and updates of caches and other ops of
    decoding that work on one core per user. Searches along rows are for TTP308, conversions of less
    than 20 µs for TTP203 and TTP302.

    ## Where it looks
    CORE COUNT, AVAILABLE WORKER CORE COUNT, the shard specs in ATTRIBUTES and the kernel time of
    the op table, on the slowest device. Captures from before the end of 2025 do not tell the cores
    available; a report database of the test does.
    """
    available = available_cores(step, report)
    if not available:
        return Answer.not_measured(NOT_TOLD)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    if all(op.cores is None for _, op in critical_ops(step)):
        return Answer.not_measured("the capture does not tell how many cores ops ran on")
    judged = [
        each
        for each in ops_on_cores(step, available, shortest_us=shortest_us.value)
        if not searches(each.op.signature) and not _goes_anyway(each.op)
    ]
    if not judged:
        return Answer.not_applicable(none_long_enough(shortest_us.value))
    few = {each.row: each for each in judged if each.part < used.value and each.is_worth_it}
    took = sum(each.op.kernel_ns for each in few.values())
    saved = {row: each.saved_ns for row, each in few.items()}
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(few), 'op')} of {microseconds(took)} on less than "
        f"{percent(used.value)} of the cores that they have work for",
        arithmetic=f"Σ time × (1 − cores ÷ possible) over {counted(len(few), 'op')}: "
        f"{microseconds(took)} → {microseconds(took - sum(saved.values()))}",
        name=lambda placed: _on_cores(few[placed.row]),
    )


def _goes_anyway(op: Op) -> bool:
    """Tell whether an op is a short conversion: better removed than spread."""
    return is_conversion(op.signature.op) and op.kernel_ns < _LONG_CONVERSION_NS


def _on_cores(each: OnCores) -> str:
    return f"{op_name(each.op)} on {each.cores} of {counted(each.possible, 'core')}"
