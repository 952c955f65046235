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
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code
from pytest_ttnn_perf.records.ttnn_report import Operation, Report, Reshard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable, Signature

_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)
#: Ops that give what they take, in the same format: in another memory, if that differs.
_COPIES: Final = re.compile(r"copy|clone|to_?memory_?config", re.I)


@rule("TTP302", "resharding", Severity.WARNING, Input.OPS, Input.REPORT)
def resharding(
    step: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.03, "of a step", "some moves stay; real decode steps: 4 to 6 %"),
    reshards: Limit = Limit(0, "reshards", "a report tells no cost, so each is named"),
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
    Choose one sharding for a run of ops, and let each op give what the next one takes. Set
    `shard_layout` of neighbouring convolutions alike.

    ## What it saves
    The time of the moves and, inside replays, the gaps before them, if all can go. Where one op
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
    places = {row: at for at, (row, _) in enumerate(ops)}
    moves = removable(step, _moves)
    took, count = sum(each.saved_ns for each in moves.values()), counted(len(moves), "op")
    time = percent(took / (step_ns(step) or 1.0))
    return check_removals(
        step,
        moves,
        limit,
        noun="move",
        sentence=f"{time} of a step only moves tensors, in {count}",
        name=lambda placed: _named(ops, places[placed.row]),
    ).with_fix(
        advice_for(
            (_SLOW if each.slow else _advice(ops, places[row]), each.saved_ns)
            for row, each in moves.items()
        )
    )


_SLOW: Final = "pad inputs on the host, and send them as the first op takes them"


def _advice(ops: Sequence[Placed], at: int) -> str:
    """Return how a move can go: what its producer should give, or where a tensor should lie."""
    own = ops[at].op.signature
    producer, consumer = _ends(ops, at)
    if consumer and not producer:
        place = own.outputs[0].memory if own.outputs else "the memory"
        return f"store what only {consumer} reads as {place} when it is loaded"
    if producer and consumer and category_of(producer) is category_of(consumer) is Category.CONV:
        return "set `shard_layout` of neighbouring convolutions alike"
    if producer and consumer and not is_conversion(producer) and not is_conversion(consumer):
        return f"let {producer} give what {consumer} takes (`memory_config`)"
    return "let one move do the work of several in a row, or choose one sharding for all of them"


def _moves(signature: Signature) -> bool:
    if _MOVES.search(signature.op):
        return True
    if not signature.inputs or not signature.outputs or not _COPIES.search(signature.op):
        return False
    before, after = signature.inputs[0], signature.outputs[0]
    return before.memory != after.memory and before.dtype == after.dtype


def _named(ops: Sequence[Placed], at: int) -> str:
    """Name a move, and between which ops it stands."""
    between = between_text({_ends(ops, at): 1})
    return ", ".join(filter(None, [op_name(ops[at].op), between]))


def _ends(ops: Sequence[Placed], at: int) -> tuple[str | None, str | None]:
    """Return which op made what a move takes, and which takes what it gives."""
    before, after = neighbours(at, len(ops), lambda place: ops[place].op.signature)
    return (
        None if before is None else short_code(ops[before].op.signature.op),
        None if after is None else short_code(ops[after].op.signature.op),
    )


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
        return Answer.not_measured(f"what ran inside is not told by {silent} of {operations}")
    return limit.clean(count)


def _way(report: Report, operation: Operation) -> str:
    ends = (first_shards(report, operation.inputs), first_shards(report, operation.outputs))
    before, after = (str(end[0]) if end else "interleaved" for end in ends)
    asked = operation.conv is not None and operation.conv.reshard_if_not_optimal
    why = ", by reshard_if_not_optimal" if asked and operation.reshard is Reshard.HIDDEN else ""
    return f"{operation_name(report, operation)}, {before} → {after}{why}"
