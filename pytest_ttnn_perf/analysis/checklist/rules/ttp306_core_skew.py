"""Cores that wait for the slowest one."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import none_long_enough
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.roofline import is_dram_sharded
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, OpTable


@rule("TTP306", "core-skew", Severity.WARNING, Input.OPS)
def core_skew(
    step: OpTable,
    *,
    ratio: Limit = Limit(
        2, "times as long", "of real convolution models, one op in a hundred is beyond"
    ),
    share: Limit = Limit(0.02, "of a step", WORTH),
    shortest_us: Limit = Limit(5, "µs", "launching takes a good part of shorter ops"),
) -> Answer:
    """Some cores of an op work much longer than others.

    ## What it finds
    Ops of which one core works a multiple of the time that another does.

    ## Why it matters
    An op ends with its slowest core. All others wait for it.

    ## What to do
    Choose a core grid that divides the tiles of the tensor, so that all cores get as many. An op of
    which one core does nearly everything often has a sharded variant that does not.

    ## What it saves
    Half of what the slowest core of each takes longer than the fastest: all cores would take the
    mean, which a capture does not have.

    ## When it is no problem
    Cores at the edge of a tensor always have a little less to do. Not counted are ops that take
    very little time, collectives, which wait for links, and matmuls with DRAM-sharded weights,
    whose cores follow the banks of DRAM.

    ## Where it looks
    DEVICE KERNEL DURATION PER CORE MIN and MAX of the op table. Most captures have these columns
    and leave them empty: then it is not measured.
    """
    if not step.columns.core_max_ns:
        return Answer.not_measured("the capture does not give times per core")
    judged = [placed for placed in critical_ops(step) if _counts(placed.op, shortest_us.value)]
    known = [(row, op) for row, op in judged if _is_told(op)]
    if not known:
        unavailable = Answer.not_measured(
            "the capture does not give times per core of ops that count"
        )
        return unavailable if judged else Answer.not_applicable(none_long_enough(shortest_us.value))
    skewed = [(row, op) for row, op in known if _ratio(op) > ratio.value]
    saved = {row: min(_half_of_difference(op), op.kernel_ns) for row, op in skewed}
    return check_savings(
        step,
        saved,
        share,
        sentence=f"uneven cores in {len(skewed)} of {counted(len(known), 'op')}: "
        f"one works more than {ratio.value:g} times as long as another",
        arithmetic=f"half of what the slowest core takes longer than the fastest, in "
        f"{counted(len(skewed), 'op')}: {microseconds(sum(saved.values()))}",
    )


def _counts(op: Op, shortest_us: float) -> bool:
    collective = category_of(op.signature.op) is Category.COLLECTIVE
    return (
        op.kernel_ns >= shortest_us * 1000 and not collective and not is_dram_sharded(op.attributes)
    )


def _is_told(op: Op) -> bool:
    return op.core_min_ns is not None and op.core_max_ns is not None


def _half_of_difference(op: Op) -> float:
    return ((op.core_max_ns or 0.0) - (op.core_min_ns or 0.0)) / 2


def _ratio(op: Op) -> float:
    least, most = op.core_min_ns or 0.0, op.core_max_ns or 0.0
    return most / least if least > 0 else (inf if most > 0 else 1.0)
