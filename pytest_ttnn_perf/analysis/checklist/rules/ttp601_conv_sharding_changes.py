"""Convolutions in a row that are sharded differently."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    Convolution,
    convolutions,
    is_convolution,
)
from pytest_ttnn_perf.analysis.checklist.residency import reshards, sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.records.finding import Evidence, Input, RuleOutcome, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report

_MOVE: Final = re.compile(r"reshard|interleaved_?to|sharded_?to", re.IGNORECASE)


@rule("TTP601", "conv-sharding-changes", Severity.WARNING, Input.OPS, Input.REPORT)
def conv_sharding_changes(
    subject: Subject,
    *,
    changes: Limit = Limit(1, "changes", "from many pixels to many channels, once"),
    share: Limit = Limit(0.02, "of a step", WORTH),
) -> Answer:
    """Convolutions in a row are sharded differently.

    ## What it finds
    How often a convolution is sharded otherwise than the one before it on the same device.

    ## Why it matters
    Between two shardings the whole activation is sent from core to core. Where that takes next to
    nothing of a step, nothing is found.

    ## What to do
    Keep one `shard_layout` for a run of convolutions. Where the shape asks for another, change it
    once, at the place where the activation is smallest.

    ## What it saves
    The time of the ops that move the activation, between convolutions that are sharded differently.

    ## When it is no problem
    Most networks need one change, from many pixels to many channels. Branches that run in turn look
    like changes, as convolutions are compared in the order in which they run.

    ## Where it looks
    The memory of the first input of convolutions in the op table. Without a table, the output and
    the `shard_layout` of convolutions in a report database; changes for which TTP302 names a
    reshard are left to it.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    sharded = [conv for conv in listed if conv.sharding is not None]
    if not sharded:
        return Answer.not_measured("the capture does not say how convolutions are sharded")
    changed = _changes(sharded, subject.report if subject.ops is None else None)
    count = counted(len(sharded), "convolution")
    answer = changes.at_most(
        float(len(changed)),
        f"the sharding changes {counted(len(changed), 'time')} from one convolution to the next, "
        f"in {count}",
        map(Evidence, changed),
    )
    if subject.ops is None:
        return answer
    step = step_of(subject.ops)
    moves = _moves(step)
    took, part = sum(moves.values()), sum(moves.values()) / (step_ns(step) or 1.0)
    told = f"the time of {counted(len(moves), 'move')} between them: {microseconds(took)}"
    if answer.outcome is RuleOutcome.FOUND and part <= share.value:
        return changes.clean(float(len(changed)), reason=f"{told}, {percent(part)} of a step")
    return answer.saving(moves, told)


def _moves(step: OpTable) -> dict[int, float]:
    """Return the ops between convolutions of different shardings that only move tensors."""
    found: dict[int, float] = {}
    since: dict[int, float] = {}
    before: str | None = None
    for row, op in critical_ops(step):
        if is_convolution(op.signature):
            sharding = sharding_in(op.signature.inputs[0].memory) if op.signature.inputs else None
            if before is not None and sharding is not None and sharding != before:
                found.update(since)
            since, before = {}, sharding or before
        elif _MOVE.search(op.signature.op):
            since[row] = op.kernel_ns
    return found


def _changes(listed: Iterable[Convolution], report: Report | None) -> list[str]:
    """Return the changes on the device that has most of them.

    Of a report, those between which no operation is known to reshard.
    """
    moves = (each.id for each in report.completed if reshards(report, each)) if report else ()
    named = sorted(moves)
    by_device: dict[int, list[Convolution]] = defaultdict(list)
    for conv in listed:
        by_device[conv.device].append(conv)
    return max((list(_along(row, named)) for row in by_device.values()), key=len)


def _along(row: Iterable[Convolution], named: Sequence[int]) -> Iterator[str]:
    for before, after in pairwise(row):
        resharded = any(before.number < move <= after.number for move in named)
        if before.sharding != after.sharding and not resharded:
            yield f"{after.name}, {before.sharding} → {after.sharding}"
