"""Cores that wait for the slowest one."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import core_ops, none_long_enough
from pytest_ttnn_perf.analysis.checklist.op_times import share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, OpTable


@rule("TTP306", "core-skew", Severity.WARNING, Input.OPS)
def core_skew(
    ops: OpTable,
    *,
    ratio: Limit = Limit(
        2, "times as long", "of real convolution models, one op in a hundred is beyond"
    ),
    share: Limit = Limit(0.05, "of kernel time", "less is not worth the work"),
    shortest_us: Limit = Limit(5, "µs", "launching takes a good part of shorter ops"),
) -> Answer:
    """Some cores of an op work much longer than others.

    ## What it finds
    The share of the kernel time that is taken by ops of which one core works a multiple of the time
    that another does.

    ## Why it matters
    An op ends with its slowest core. All others wait for it.

    ## What to do
    Choose a core grid that divides the tiles of the tensor, so that all cores get as many. An op of
    which one core does nearly everything often has a sharded variant that does not.

    ## When it is no problem
    Cores at the edge of a tensor always have a little less to do. Not counted are ops that take
    very little time, collectives, which wait for links, and matmuls with DRAM-sharded weights,
    whose cores follow the banks of DRAM.

    ## Where it looks
    DEVICE KERNEL DURATION PER CORE MIN and MAX of the op table. Most captures have these columns
    and leave them empty: then it cannot be told.
    """
    if not ops.columns.core_max_ns:
        return Answer.not_measured("the capture does not tell times per core")
    judged = core_ops(ops, shortest_us=shortest_us.value)
    known = [op for op in judged if op.core_min_ns is not None and op.core_max_ns is not None]
    if not known:
        unavailable = Answer.not_measured(
            "the capture does not tell times per core of ops that count"
        )
        return unavailable if judged else Answer.not_applicable(none_long_enough(shortest_us.value))
    skewed = [op for op in known if _ratio(op) > ratio.value]
    part = share_of(ops, skewed)
    time = percent(part.fraction)
    return share.at_most(
        part.fraction,
        f"uneven cores in {len(skewed)} of {counted(len(known), 'op')}, {time} of "
        f"the kernel time: one works more than {ratio.value:g} times as long as another",
        worst_ops(
            skewed,
            lambda op: (op.core_max_ns or 0.0) - (op.core_min_ns or 0.0),
            of=part.total_ns,
        ),
    )


def _ratio(op: Op) -> float:
    least, most = op.core_min_ns or 0.0, op.core_max_ns or 0.0
    return most / least if least > 0 else (inf if most > 0 else 1.0)
