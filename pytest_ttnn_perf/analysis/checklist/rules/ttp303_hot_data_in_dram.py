"""Time in ops that fetch activations from DRAM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from pytest_ttnn_perf.analysis.checklist.residency import (
    NO_ACTIVATIONS,
    PREFILL,
    activation_reads,
    in_dram,
    is_prefill,
)
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


@dataclass(frozen=True, slots=True)
class HotDataInDram(Rule):
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

    code: ClassVar[str] = "TTP303"
    name: ClassVar[str] = "hot-data-in-dram"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    share: float = limit(
        0.2,
        unit="of kernel time",
        source="well sharded decode models: 2 to 12 %; others: 40 % and more",
    )

    def check(self, subject: Subject) -> Answer:
        """Compare the share of ops that read activations from DRAM with the limit."""
        assert subject.ops is not None
        if not has_operands(subject.ops):
            return not_measured(NO_OPERANDS)
        if is_prefill(subject.ops):
            return not_applicable(PREFILL)
        reads = activation_reads(subject.ops)
        if not any(each.activations for each in reads):
            return not_applicable(NO_ACTIVATIONS)
        fetching = [op for each in reads if any(map(in_dram, each.activations)) for op in each.ops]
        share = share_of(subject.ops, fetching)
        if share.fraction <= self.share:
            return clean(share.fraction, limit=self.share, unit="of kernel time")
        return found(
            f"{share.told('op')} with activations read from DRAM",
            value=share.fraction,
            limit=self.share,
            unit="of kernel time",
            evidence=worst_ops(fetching, of=share.total_ns),
        )
