"""Cores that wait for the slowest one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import core_ops, none_long_enough
from pytest_ttnn_perf.analysis.checklist.op_times import share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op


@dataclass(frozen=True, slots=True)
class CoreSkew(Rule):
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

    code: ClassVar[str] = "TTP306"
    name: ClassVar[str] = "core-skew"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    ratio: float = limit(
        2, unit="times as long", source="of real convolution models, one op in a hundred is beyond"
    )
    share: float = limit(0.05, unit="of kernel time", source="less is not worth the work")
    shortest_us: float = limit(5, unit="µs", source="launching takes a good part of shorter ops")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of ops with uneven cores with the limit."""
        assert subject.ops is not None
        if not subject.ops.columns.core_max_ns:
            return not_measured("the capture does not tell times per core")
        judged = core_ops(subject.ops, shortest_us=self.shortest_us)
        known = [op for op in judged if op.core_min_ns is not None and op.core_max_ns is not None]
        if not known:
            untold = not_measured("the capture does not tell times per core of ops that count")
            return untold if judged else not_applicable(none_long_enough(self.shortest_us))
        skewed = [op for op in known if _ratio(op) > self.ratio]
        weighed, unit = share_of(subject.ops, skewed), "of kernel time"
        share = weighed.fraction
        if share <= self.share:
            return clean(share, limit=self.share, unit=unit)
        return found(
            f"uneven cores in {len(skewed)} of {counted(len(known), 'op')}, {percent(share)} of "
            f"the kernel time: one works more than {self.ratio:g} times as long as another",
            value=share,
            limit=self.share,
            unit=unit,
            evidence=worst_ops(skewed, _waited_ns, of=weighed.total_ns),
        )


def _ratio(op: Op) -> float:
    least, most = op.core_min_ns or 0.0, op.core_max_ns or 0.0
    return most / least if least > 0 else (inf if most > 0 else 1.0)


def _waited_ns(op: Op) -> float:
    return (op.core_max_ns or 0.0) - (op.core_min_ns or 0.0)
