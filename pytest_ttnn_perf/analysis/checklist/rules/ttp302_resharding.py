"""Tensors that are moved from one sharding to another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of
from pytest_ttnn_perf.analysis.checklist.residency import operation_name, sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ttnn_report import Operation, Report, Reshard

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)


@rule("TTP302", "resharding", Severity.WARNING, Input.OPS, Input.REPORT)
def resharding(
    ops: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.05, "of kernel time", "real decode models: 0 to 6 %"),
    reshards: Limit = Limit(0, "reshards", "a report tells no cost, so each is named"),
) -> Answer:
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
    if ops is not None:
        return _by_time(ops, share)
    assert report is not None
    return _by_count(report, reshards)


def _by_time(table: OpTable, limit: Limit) -> Answer:
    part = share_of(table, ops_like(table, lambda one: _MOVES.search(one.op) is not None))
    time, moves = percent(part.fraction), counted(part.count, "op")
    return part.at_most(limit, f"{time} of the kernel time only moves tensors, in {moves}")


def _by_count(report: Report, limit: Limit) -> Answer:
    moves = [operation for operation in report.operations if _reshards(report, operation)]
    count = float(len(moves))
    if count > limit.value:
        hidden = sum(operation.reshard is Reshard.HIDDEN for operation in moves)
        reason = f"{counted(len(moves), 'reshard')}, {hidden} hidden inside another operation"
        return limit.found(
            count, reason, (Evidence(_way(report, operation)) for operation in moves)
        )
    silent = sum(operation.reshard is Reshard.UNKNOWN for operation in report.operations)
    if silent:
        operations = counted(len(report.operations), "operation")
        return Answer.not_measured(f"what ran inside is not told by {silent} of {operations}")
    return limit.clean(count)


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
    return f"{operation_name(report, operation)}, {before} → {after}"
