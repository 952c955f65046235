"""Ops that run on few of the cores that they could use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import none_long_enough
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, op_name
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from pytest_ttnn_perf.analysis.checklist.parallelism import (
    NOT_TOLD,
    SHORTEST_US,
    USED,
    available_cores,
    few_cores,
    ops_on_cores,
)
from pytest_ttnn_perf.analysis.checklist.products import dram_sharded_ns, matmuls_of
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.analysis.ops.roofline import board_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.analysis.checklist.parallelism import OnCores
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP305", "unused-cores", Severity.WARNING, Input.OPS)
def unused_cores(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    used: Limit = Limit(
        USED, "of the cores with work", "tt-perf-report marks ops on less than half of the cores"
    ),
    shortest_us: Limit = Limit(SHORTEST_US, "µs", "launching takes a good part of shorter ops"),
) -> Answer:
    """Ops run on few of the cores that they could use.

    ## What it finds
    Each op of a step that runs on less than half of the cores that it could use. A matmul, an
    elementwise op or a norm can be cut into the tiles that it gives, attention and conversions
    into rows of tiles, ops that arrange heads along the sequence alone. Of an op whose output is
    sharded in L1, the cores that hold a shard count, whatever CORE COUNT says. In decode steps a
    RotaryEmbedding of one row of tiles has one core in any case: it is named where its input is not
    sharded.

    ## Why it matters
    An op on one core takes up to a hundred times as long as it has to.

    ## What to do
    Give these ops more cores, each in its own way. Matmuls: a larger
    `compute_with_storage_grid_size` with smaller `per_core_M` and `per_core_N`; with fewer rows of
    tiles than the grid has rows of cores, a 1D program config (`mcast_in0=True`), as a 2D one
    leaves the other rows idle; with a batch in both inputs, `MatmulMultiCoreReuseProgramConfig`, as
    others work on one of the batch after the other. Norms: shard the input by width, or by block.
    Elementwise ops on the shards of their neighbours: fuse them, or give all of them more shards.
    RotaryEmbedding: `rotary_embedding_hf`, or `rotary_embedding_llama` for heads of up to 256; in
    decode steps on inputs that are sharded by height.

    ## What it saves
    Time × (1 − cores ÷ possible cores), but no op gets shorter than 2 µs, a norm than 7 µs and
    2.5 µs for moves to shards, a RotaryEmbedding than 5 µs, and none than reading its operands
    takes at 75 % of the DRAM bandwidth, or 60 % with weights of a block format that are
    interleaved. A matmul takes 5 µs beside that. Of an elementwise op on the shards of its
    neighbours, two reshards of 2 µs are subtracted.

    ## When it is no problem
    Small tensors have too few tiles for all cores, which the rule takes into account. Not counted
    are ops that take very little time, collectives, which wait for links, ops that only move data,
    which choose their cores themselves, matmuls with DRAM-sharded weights, whose number of cores
    follows the banks of DRAM, and updates of caches and other ops of decoding that work on one core
    per user. Matmuls of up to 32 rows are left to TTP311 unless more cores are clearly faster.
    Searches along rows are for TTP308, conversions of less than 20 µs for TTP203.

    ## Where it looks
    CORE COUNT, AVAILABLE WORKER CORE COUNT, program configs and shard specs in ATTRIBUTES and the
    kernel time of the op table, on the slowest device. Captures from before the end of 2025 do not
    tell the cores available: a report database of the test does, or else the op that runs on most.
    """
    available = available_cores(step, report)
    if not available:
        return Answer.not_measured(NOT_TOLD)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    if not any(step.columns.cores):
        return Answer.not_measured("the capture does not say how many cores ops ran on")
    if not any(ops_on_cores(step, available, shortest_us=shortest_us.value)):
        return Answer.not_applicable(none_long_enough(shortest_us.value))
    few = few_cores(step, report, used=used.value, shortest_us=shortest_us.value)
    took = sum(each.op.kernel_ns for each in few.values())
    saved = {row: each.saved_ns for row, each in few.items()}
    use, they = ("uses", "it") if len(few) == 1 else ("use", "they")
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{microseconds(took)} of a step in {counted(len(few), 'op')} that {use} less "
        f"than {percent(used.value)} of the cores {they} could{_or_not_sharded(few.values())}",
        arithmetic="scaled to the usable cores, but not below each op's minimum: "
        f"{microseconds(took)} → {microseconds(took - sum(saved.values()))}",
        name=lambda placed: f"{op_name(placed.op)} {few[placed.row].cores_text}",
    ).with_fix(advice_for(((_advice(each, step), each.saved_ns) for each in few.values()), most=3))


def _or_not_sharded(few: Iterable[OnCores]) -> str:
    return ", or are not sharded" if any(each.interleaved for each in few) else ""


def _advice(each: OnCores, step: OpTable) -> str:
    """Return how an op gets more cores, and the other way where there is one."""
    board = board_of(step)
    product = next((one for one in matmuls_of(step) if one.row == each.row), None)
    if board and product and dram_sharded_ns(product, board):
        return f"{each.remedy.value}, or DRAM-sharded weights (TTP311)"
    return each.remedy.value
