"""Tensors that are moved from one sharding to another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.residency import called, sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit, not_measured
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ttnn_report import Reshard

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import OpTable, Signature
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report

_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)


@dataclass(frozen=True, slots=True)
class Resharding(Rule):
    """Tensors are moved from one sharding to another.

    ## What it finds
    The share of the kernel time in ops that only cut a tensor anew: reshard, interleaved to sharded
    and sharded to interleaved. With a report database alone, the number of operations that
    move a tensor from one sharding to another, also those that do so unasked on their way, as a
    convolution may. Moves between interleaved and sharded are not counted there.

    ## Why it matters
    A reshard computes nothing. It sends a whole tensor from core to core.

    ## What to do
    Choose one sharding for a run of ops, and let each op give what the next one takes. Set
    `shard_layout` of neighbouring convolutions alike.

    ## When it is no problem
    Where one op needs another sharding to be fast, the move may cost less than it saves.

    ## Where it looks
    OP CODE and the kernel time of the op table. In a report database the memory configs of inputs
    and outputs, and the captured graph of each operation.
    """

    code: ClassVar[str] = "TTP302"
    name: ClassVar[str] = "resharding"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS, Input.REPORT)

    share: float = limit(0.05, unit="of kernel time", source="real decode models: 0 to 6 %")
    reshards: float = limit(0, unit="reshards", source="a report tells no cost, so each is named")

    def check(self, subject: Subject) -> Answer:
        """Compare what reshards cost, or how many there are, with the limit."""
        if subject.ops is not None:
            return self._by_time(subject.ops)
        assert subject.report is not None
        return self._by_count(subject.report)

    def _by_time(self, table: OpTable) -> Answer:
        share, unit = share_of(table, ops_like(table, _moves)), "of kernel time"
        if share.fraction <= self.share:
            return clean(share.fraction, limit=self.share, unit=unit)
        return found(
            f"{percent(share.fraction)} of the kernel time only moves tensors, in "
            f"{counted(share.count, 'op')}",
            value=share.fraction,
            limit=self.share,
            unit=unit,
            evidence=worst_ops(share.ops, of=share.total_ns),
        )

    def _by_count(self, report: Report) -> Answer:
        moves = [each for each in report.operations if _reshards(report, each)]
        count, unit = float(len(moves)), "reshards"
        if count > self.reshards:
            hidden = sum(each.reshard is Reshard.HIDDEN for each in moves)
            reason = f"{counted(len(moves), 'reshard')}, {hidden} hidden inside another operation"
            evidence = [Evidence(_way(report, each)) for each in moves]
            return found(reason, value=count, limit=self.reshards, unit=unit, evidence=evidence)
        silent = sum(each.reshard is Reshard.UNKNOWN for each in report.operations)
        if silent:
            operations = counted(len(report.operations), "operation")
            return not_measured(f"what ran inside is not told by {silent} of {operations}")
        return clean(count, limit=self.reshards, unit=unit)


def _moves(signature: Signature) -> bool:
    return _MOVES.search(signature.op) is not None


def _reshards(report: Report, operation: Operation) -> bool:
    if operation.reshard is not Reshard.UNKNOWN:
        return operation.reshard is not Reshard.NONE
    before, after = _shards(report, operation.inputs), _shards(report, operation.outputs)
    return "memory_config" in operation.name and bool(before and after) and before != after


def _shards(report: Report, numbers: tuple[int, ...]) -> tuple[object, ...]:
    """Return how the first of some tensors is cut; nothing if it is not."""
    tensor = report.tensors.get(numbers[0]) if numbers else None
    sharding = sharding_in(tensor.memory) if tensor else None
    return (sharding, tensor.shard) if tensor and sharding else ()


def _way(report: Report, operation: Operation) -> str:
    ends = (_shards(report, operation.inputs), _shards(report, operation.outputs))
    before, after = (str(end[0]) if end else "interleaved" for end in ends)
    return f"{called(report, operation)}, {before} → {after}"
