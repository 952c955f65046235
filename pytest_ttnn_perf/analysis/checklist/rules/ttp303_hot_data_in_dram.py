"""Time in ops that fetch activations from DRAM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, share_of
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from pytest_ttnn_perf.analysis.checklist.residency import (
    NO_ACTIVATIONS,
    PREFILL,
    activation_reads,
    is_prefill,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.ops.roofline import in_dram
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP303", "hot-data-in-dram", Severity.WARNING, Input.OPS)
def hot_data_in_dram(
    ops: OpTable,
    *,
    share: Limit = Limit(
        0.2, "of kernel time", "well sharded decode models: 2 to 12 %; others: 40 % and more"
    ),
) -> Answer:
    """Ops fetch from DRAM what other ops have just made.

    ## What it finds
    The share of the kernel time in ops that read an activation from DRAM: a tensor that another op
    of the window made. Weights that stream in from DRAM do not count, nor caches of keys and
    values.

    ## Why it matters
    L1 is next to the cores; all cores together share the bandwidth of DRAM, which weights need.

    ## What to do
    Give the op that makes the tensor an L1 memory config, sharded where the next op takes that.
    Free tensors that are used no more with `ttnn.deallocate`, so that others have room.

    ## When it is no problem
    Tensors that are larger than L1, or that are read much later, as those of a skip connection.
    For a window that only fills a cache of keys and values the rule does not apply: activations are
    as long as the prompt.

    ## Where it looks
    Shapes, formats and memory of inputs and outputs in the op table: an input that looks like an
    earlier output is taken for it. The kernel times are those of the ops that read.
    """
    if not has_operands(ops):
        return Answer.not_measured(NO_OPERANDS)
    if is_prefill(ops):
        return Answer.not_applicable(PREFILL)
    reads = activation_reads(ops)
    if not any(read.activations for read in reads):
        return Answer.not_applicable(NO_ACTIVATIONS)
    fetching = [op for read in reads if any(map(in_dram, read.activations)) for op in read.ops]
    part = share_of(ops, fetching)
    return part.at_most(share, f"{part.sentence('op')} with activations read from DRAM")
