"""Activations that are not sharded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.operands import (
    WORTH_BYTES,
    Operand,
    by_weight,
    if_worth,
)
from pytest_ttnn_perf.analysis.checklist.residency import (
    NO_ACTIVATIONS,
    NO_GRAPHS,
    activation_operands,
    has_graphs,
    is_interleaved,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.ops.roofline import in_dram
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP301", "interleaved-activations", Severity.WARNING, Input.OPS, Input.REPORT)
def interleaved_activations(
    subject: Subject,
    report: Report | None,
    *,
    share: Limit = Limit(0.5, "of activation bytes", "ttnn-visualizer-cli warns above half"),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Most of what ops hand on to each other is interleaved in L1.

    ## What it finds
    The share of activations, by bytes read, that lie in L1 and are interleaved, not sharded.
    Activations are tensors that one op makes and another one reads. Weights do not count, and what
    lies in DRAM is left to TTP303.

    ## Why it matters
    The pages of an interleaved tensor lie on all banks, so every core fetches most of its input
    from elsewhere. A shard lies in the L1 of the core that works on it.

    ## What to do
    Give the ops of a block one sharded memory config and pass it on from op to op. Shard by height
    where there are many rows, by width where there are few rows and many columns, by block between.

    ## When it is no problem
    Small tensors: what is read in less than launching an op takes is no finding.

    ## Where it looks
    The tensors that a report database follows. With an op table, which tells times, TTP303 says
    what activations in DRAM cost, and this rule does not apply.
    """
    if subject.ops is not None or report is None:
        return Answer.not_applicable("an op table says what that costs: TTP303")
    if not has_graphs(report):
        return Answer.not_measured(NO_GRAPHS)
    reads = list(activation_operands(subject, with_producer=True))
    total = sum(read.size for read in reads)
    if not total:
        return Answer.not_applicable(NO_ACTIVATIONS)
    spread = [read for read in reads if is_interleaved(read.tensor) and not in_dram(read.tensor)]
    spread_bytes = sum(read.size for read in spread)
    part = spread_bytes / total
    answer = share.at_most(
        part,
        f"{_count(spread)} of {counted(_count(reads), 'activation')} that ops read lie interleaved "
        f"in L1, {percent(part)} of the bytes",
        by_weight(((read.op, read.size) for read in spread), unit="B"),
    )
    return if_worth(answer, spread_bytes, worth, where="L1")


def _count(reads: Iterable[Operand]) -> int:
    return sum(read.times for read in reads)
