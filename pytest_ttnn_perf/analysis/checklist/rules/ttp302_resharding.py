"""Tensors that are moved from one sharding to another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.removals import advice_for, check_removals, removable
from pytest_ttnn_perf.analysis.checklist.residency import (
    first_shards,
    operation_name,
    reshards,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops, step_ns
from pytest_ttnn_perf.analysis.ops.conversions import between_text, is_conversion, neighbours
from pytest_ttnn_perf.analysis.ops.roofline import is_dram_sharded, rooflines
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code
from pytest_ttnn_perf.records.ttnn_report import Operation, Report, Reshard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import Op, OpTable, Signature, Tensor

    _Ends = tuple[Op | None, Op | None]

_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)
#: Ops that give what they take, in the same format: in another memory, if that differs.
_COPIES: Final = re.compile(r"copy|clone|to_?memory_?config", re.I)


@rule("TTP302", "resharding", Severity.WARNING, Input.OPS, Input.REPORT)
def resharding(
    step: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.03, "of a step", "some moves stay; real decode steps: 4 to 6 %"),
    reshards: Limit = Limit(0, "reshards", "a report has no cost, so each is named"),
) -> Answer:
    """Tensors are moved from one sharding, or memory, to another.

    ## What it finds
    The part of a step in ops that only cut a tensor anew or bring it elsewhere: reshard,
    interleaved to sharded and back, copies between L1 and DRAM. With a report database alone, the
    number of operations that move a tensor from one sharding to another, also those that do so
    unasked on their way, as a convolution may. Moves between interleaved and sharded are not
    counted there.

    ## Why it matters
    A move computes nothing. It sends a whole tensor from core to core, or to DRAM and back.

    ## What to do
    Keep one sharding throughout a run of ops, and have each op write the memory config that the
    next one reads. A norm on shards and a matmul with DRAM-sharded weights can only write their own
    shards: have the next op read these. Set `shard_layout` of neighbouring convolutions alike.

    ## What it saves
    At most the time of the moves and, inside replays, the gaps before them. Where one op
    needs another sharding to be fast, its move stays.

    ## When it is no problem
    Where one op needs another sharding to be fast, the move may cost less than it saves. What comes
    row-major from the host, and what a step begins and ends with, has to be moved: it is counted
    only where it takes more than ten times its bytes by the bandwidth of DRAM.

    ## Where it looks
    OP CODE, the memory of inputs and outputs and the kernel time of the op table, on the slowest
    device. In a report database the memory configs of inputs and outputs, and the captured graph of
    each operation.
    """
    if step is not None:
        return _by_time(step, share)
    assert report is not None
    return _by_count(report, reshards)


def _by_time(step: OpTable, limit: Limit) -> Answer:
    ops = critical_ops(step)
    stale = any(line.stale for line in rooflines(step))
    moves = removable(step, _moves)
    ends = {
        row: (op, _ends(ops, at, stale=stale)) for at, (row, op) in enumerate(ops) if row in moves
    }
    took, count = sum(each.saved_ns for each in moves.values()), counted(len(moves), "op")
    time = percent(took / (step_ns(step) or 1.0))
    return check_removals(
        step,
        moves,
        limit,
        noun="move",
        sentence=f"{time} of a step only moves tensors, in {count}",
        name=lambda placed: _named(*ends[placed.row]),
    ).with_fix(
        advice_for(
            (_SLOW if each.slow else _advice(*ends[row]), each.saved_ns)
            for row, each in moves.items()
        )
    )


_SLOW: Final = "pad inputs on the host, and send them as the first op takes them"


_MERGE: Final = "merge consecutive moves into one, or keep one sharding throughout"


def _advice(move: Op, ends: _Ends) -> str:
    """Return how a move can go: what its producer should write, or its consumer read.

    It is "" where that is not known.
    """
    before, after = ends
    if any(end is not None and is_conversion(end.signature.op) for end in ends):
        return _MERGE
    if after is None:
        return ""
    consumer = short_code(after.signature.op)
    if before is None:
        place = move.signature.outputs[0].memory
        return f"store what only {consumer} reads as {place} when it is loaded"
    producer = short_code(before.signature.op)
    if category_of(producer) is category_of(consumer) is Category.CONV:
        return "set `shard_layout` of neighbouring convolutions alike"
    if _REDUCE_SCATTER.search(consumer):
        return "look at the exchange that follows first (TTP703)"
    if _writes_its_shards_only(before):
        return f"have {consumer} read the shards that {producer} writes"
    return f"have {producer} write the memory config that {consumer} reads"


_REDUCE_SCATTER: Final = re.compile(r"reduce_?scatter", re.IGNORECASE)


def _writes_its_shards_only(op: Op) -> bool:
    """Tell whether an op has to write shards as it works on them.

    Norms on shards do, and matmuls with DRAM-sharded weights, which write shards by width in L1.
    """
    signature = op.signature
    on_shards = bool(signature.inputs) and "SHARDED" in signature.inputs[0].memory
    return is_dram_sharded(op.attributes) or (
        on_shards and category_of(signature.op) is Category.NORM
    )


def _moves(signature: Signature) -> bool:
    if _MOVES.search(signature.op):
        return True
    if not signature.inputs or not signature.outputs or not _COPIES.search(signature.op):
        return False
    before, after = signature.inputs[0], signature.outputs[0]
    return before.memory != after.memory and before.dtype == after.dtype


def _named(move: Op, ends: _Ends) -> str:
    """Name a move, and between which ops it stands."""
    codes = tuple(None if end is None else short_code(end.signature.op) for end in ends)
    return ", ".join(filter(None, [op_name(move), between_text({codes: 1})]))


def _ends(ops: Sequence[Placed], at: int, *, stale: bool) -> _Ends:
    """Return which op made what a move takes, and which takes what it gives.

    In a capture with stale shapes these tell nothing: there it is the op right before, or behind,
    if what it gives, or takes, lies in that memory.
    """
    if not stale:
        places = neighbours(at, len(ops), lambda place: ops[place].op.signature)
        before, after = (None if place is None else ops[place].op for place in places)
        return before, after
    own = ops[at].op.signature
    before = ops[at - 1].op if at else None
    after = ops[at + 1].op if at + 1 < len(ops) else None
    return (
        before if before and _share_memory(before.signature.outputs, own.inputs) else None,
        after if after and _share_memory(own.outputs, after.signature.inputs) else None,
    )


def _share_memory(made: Sequence[Tensor], taken: Sequence[Tensor]) -> bool:
    return bool({each.memory for each in made} & {each.memory for each in taken})


def _by_count(report: Report, limit: Limit) -> Answer:
    moves = [operation for operation in report.completed if reshards(report, operation)]
    count = float(len(moves))
    if count > limit.value:
        hidden = sum(operation.reshard is Reshard.HIDDEN for operation in moves)
        inside = f", {hidden} hidden inside another operation" if hidden else ""
        reason = f"{counted(len(moves), 'reshard')}{inside}"
        return limit.found(
            count, reason, (Evidence(_way(report, operation)) for operation in moves)
        )
    silent = sum(operation.reshard is Reshard.UNKNOWN for operation in report.completed)
    if silent:
        operations = counted(len(report.completed), "operation")
        return Answer.not_measured(f"what ran inside is not given by {silent} of {operations}")
    return limit.clean(count)


def _way(report: Report, operation: Operation) -> str:
    ends = (first_shards(report, operation.inputs), first_shards(report, operation.outputs))
    before, after = (str(end[0]) if end else "interleaved" for end in ends)
    asked = operation.conv is not None and operation.conv.reshard_if_not_optimal
    why = ", by reshard_if_not_optimal" if asked and operation.reshard is Reshard.HIDDEN else ""
    return f"{operation_name(report, operation)}, {before} → {after}{why}"
