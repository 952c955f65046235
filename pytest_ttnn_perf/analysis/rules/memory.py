"""Where activations lie: interleaved, resharded, in DRAM; and how full L1 is."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_ACTIVATIONS,
    NO_OPERANDS,
    first_shards,
    look_of,
    operation_name,
    reshards,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    advice_for,
    check_removals,
    check_savings,
    critical_ops,
    has_operands,
    op_name,
    removable,
    share_of_step,
)
from pytest_ttnn_perf.analysis.ops.names import between_text, is_conversion, neighbours
from pytest_ttnn_perf.analysis.ops.roofline import (
    Bound,
    board_of,
    in_dram,
    is_dram_sharded,
    operands_read,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.analysis.readers.report_db import Operation, Report, Reshard
from pytest_ttnn_perf.analysis.rules.kernels import tensors_fit_l1
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, rule
from pytest_ttnn_perf.core.ops import Category
from pytest_ttnn_perf.core.text import counted, duration
from pytest_ttnn_perf.core.text import size as size_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import OpPlace
    from pytest_ttnn_perf.analysis.readers.ttlang import TtlangLog
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Tensor

    _Ends = tuple[Op | None, Op | None]


_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)
#: Ops that give what they take, in the same format: in another memory, if that differs.
_COPIES: Final = re.compile(r"copy|clone|to_?memory_?config", re.I)
_REDUCE_SCATTER: Final = re.compile(r"reduce_?scatter", re.IGNORECASE)
_SLOW: Final = "pad inputs on the host, and send them as the first op takes them"
_MERGE: Final = "merge consecutive moves into one, or keep one sharding throughout"


@rule("TTP302", "resharding", Severity.WARNING, Input.OPS, Input.REPORT)
def resharding(
    step: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.03, "of a step", "some moves stay; real decode steps: 4 to 6 %"),
    reshards: Limit = Limit(0, "reshards", "a report has no cost, so each is named"),
) -> Answer:
    """Tensors are moved from one sharding, or memory, to another.

    Finds the part of a step in ops that only cut a tensor anew or bring it elsewhere: reshard,
    interleaved to sharded and back, copies between L1 and DRAM. With a report database alone, the
    number of operations that move a tensor from one sharding to another, also unasked.

    ## What to do
    Keep one sharding throughout a run of ops, and have each op write the memory config that the
    next one reads. A norm on shards and a matmul with DRAM-sharded weights can only write their own
    shards: have the next op read these. Set `shard_layout` of neighbouring convolutions alike.

    ```py
    shards = ttnn.create_sharded_memory_config(
        (32, 5120), core_grid=ttnn.CoreGrid(x=8, y=4), strategy=ttnn.ShardStrategy.WIDTH
    )
    ```

    ## What it saves
    At most the time of the moves and, inside replays, the gaps before them. Where one op needs
    another sharding to be fast, its move stays.

    ## When it is no problem
    What comes row-major from the host, and what a step begins and ends with, has to be moved: it is
    counted only where it takes more than ten times its bytes by the bandwidth of DRAM.
    """
    if step is None:
        assert report is not None
        return _reshards_in(report, reshards)
    ops = critical_ops(step)
    stale = any(line.stale for line in rooflines(step))
    moves = removable(step, _only_moves)
    ends = {
        row: (op, _ends(ops, at, stale=stale)) for at, (row, op) in enumerate(ops) if row in moves
    }

    def named(placed: OpPlace) -> str:
        move, beside = ends[placed.row]
        codes = tuple(None if end is None else end.signature.code for end in beside)
        return ", ".join(filter(None, [op_name(move), between_text({codes: 1})]))

    time = share_of_step(step, sum(each.saved_ns for each in moves.values()))
    return check_removals(
        step,
        moves,
        share,
        noun="move",
        sentence=f"{time} of a step only moves tensors, in {counted(len(moves), 'op')}",
        name=named,
    ).with_fix(
        advice_for(
            (_SLOW if each.slow else _move_advice(*ends[row]), each.saved_ns)
            for row, each in moves.items()
        )
    )


def _move_advice(move: Op, ends: _Ends) -> str:
    before, after = ends
    if any(end is not None and is_conversion(end.signature.op) for end in ends):
        return _MERGE
    if after is None:
        return ""
    consumer = after.signature.code
    if before is None:
        place = move.signature.outputs[0].memory
        return f"store what only {consumer} reads as {place} when it is loaded"
    producer, inputs = before.signature.code, before.signature.inputs
    if _REDUCE_SCATTER.search(consumer):
        return "look at the exchange that follows first (TTP703)"
    norm_on_shards = (
        before.signature.category is Category.NORM and inputs and "SHARDED" in inputs[0].memory
    )
    if norm_on_shards or is_dram_sharded(before.attributes):
        return f"have {consumer} read the shards that {producer} writes"
    return f"have {producer} write the memory config that {consumer} reads"


def _only_moves(signature: Signature) -> bool:
    if _MOVES.search(signature.op):
        return True
    if not signature.inputs or not signature.outputs or not _COPIES.search(signature.op):
        return False
    before, after = signature.inputs[0], signature.outputs[0]
    return before.memory != after.memory and before.dtype == after.dtype


def _ends(ops: Sequence[OpPlace], at: int, *, stale: bool) -> _Ends:
    """Return the producer and the consumer of a move.

    In a capture with stale shapes these tell nothing: there it is the op right before, or behind,
    if what it gives, or takes, lies in that memory.
    """
    if not stale:
        places = neighbours(at, len(ops), lambda place: ops[place].op.signature)
        before, after = (None if place is None else ops[place].op for place in places)
        return before, after

    def share_memory(made: Sequence[Tensor], taken: Sequence[Tensor]) -> bool:
        return bool({each.memory for each in made} & {each.memory for each in taken})

    own = ops[at].op.signature
    before = ops[at - 1].op if at else None
    after = ops[at + 1].op if at + 1 < len(ops) else None
    return (
        before if before and share_memory(before.signature.outputs, own.inputs) else None,
        after if after and share_memory(own.outputs, after.signature.inputs) else None,
    )


def _reshards_in(report: Report, limit: Limit) -> Answer:
    moves = [operation for operation in report.completed if reshards(report, operation)]
    if len(moves) > limit.value:
        hidden = sum(operation.reshard is Reshard.HIDDEN for operation in moves)
        inside = f", {hidden} hidden inside another operation" if hidden else ""
        reason = f"{counted(len(moves), 'reshard')}{inside}"
        return limit.found(
            float(len(moves)), reason, (Evidence(_way(report, operation)) for operation in moves)
        )
    silent = sum(operation.reshard is Reshard.UNKNOWN for operation in report.completed)
    if silent:
        operations = counted(len(report.completed), "operation")
        return Answer.not_measured(f"what ran inside is not given by {silent} of {operations}")
    return limit.clean(float(len(moves)))


def _way(report: Report, operation: Operation) -> str:
    ends = (first_shards(report, operation.inputs), first_shards(report, operation.outputs))
    before, after = (str(end[0]) if end else "interleaved" for end in ends)
    asked = operation.conv is not None and operation.conv.reshard_if_not_optimal
    why = ", by reshard_if_not_optimal" if asked and operation.reshard is Reshard.HIDDEN else ""
    return f"{operation_name(report, operation)}, {before} → {after}{why}"


_L1_BYTES: Final = 1.4e6
#: Of the L1 of all cores, what one tensor may take: others, and circular buffers, need room too.
_ROOM: Final = 0.1
#: What L1 takes of the time of DRAM: all cores read their own at once.
_L1_TIME: Final = 0.1
_CACHE: Final = re.compile(r"cache", re.IGNORECASE)
#: An op that uses less of the bandwidth than this waits for something else.
_LIMITED_FROM: Final = 0.4
#: An elementwise op of bfloat16 takes so long for each tile of a core, also from L1.
_TILE_NS: Final = 650.0
_TILE: Final = 32 * 32


@rule("TTP303", "hot-data-in-dram", Severity.WARNING, Input.OPS, Input.KERNELS)
def hot_data_in_dram(
    step: OpTable | None,
    kernels: TtlangLog | None,
    facts: Mapping[str, Scalar],
    *,
    share: Limit = SHARE,
) -> Answer:
    """Ops hand activations on through DRAM that would fit into L1.

    Finds the time that writing activations to DRAM and reading them again can cost: tensors that
    one op of the step makes and another one reads, and that are small enough for L1. Weights and
    caches do not count. Of a tt-lang kernel, finds that all of its tensors fit into L1 together
    with its buffers, at the size of the fact `production_shape`: for information.

    ## What to do
    Give the op that makes the tensor an L1 memory config, sharded where the next op takes that. A
    matmul of many rows needs `core_grid` or a program config then: without, operands that are
    interleaved in L1 made real ones four times slower. Free tensors that are used no more with
    `ttnn.deallocate`, so that others have room. `ttnn-perf analyze l1` shows what fills L1 at each
    operation of a report database; in your program, print it:

    ```py
    ttnn.device.dump_device_memory_state(device, prefix="before_matmul_")
    ```

    ## What it saves
    The bytes written and read, by the peak bandwidth of DRAM, less a tenth, which L1 takes. No
    elementwise op gets shorter than 0.65 µs for each tile of a core. Nothing of ops that use less
    than 40 % of that bandwidth or are bound by computing, nor of conversions.

    ## When it is no problem
    Tensors that are larger than a tenth of all L1 stay in DRAM, and do not count. Tensors that are
    read much later, such as a skip connection, may have to.
    """
    if step is None or not step.devices:
        assert kernels is not None  # one of the two is there
        return tensors_fit_l1(kernels, facts)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    board, ops = board_of(step), critical_ops(step)
    if board is None or not step.available_cores:
        return Answer.not_measured("the capture does not give the chip and its cores")
    passed = _passed(ops)
    if not any(each.read for each in passed):
        return Answer.not_applicable(NO_ACTIVATIONS)
    most = step.available_cores * _L1_BYTES * _ROOM
    moved: dict[int, float] = {}
    saved: dict[int, float] = {}
    for (row, op), (written, read) in zip(ops, passed, strict=True):
        line = rooflines(step)[row]
        waits = (line.dram_fraction or 0.0) >= _LIMITED_FROM
        computes = line.bound in {Bound.COMPUTE, Bound.BOTH}
        if waits and not computes and not is_conversion(op.signature.op):
            sizes = (size_of(each) for each in (*written, *read) if in_dram(each))
            size = sum(each for each in sizes if each <= most)
            gain = size / board.dram_gb_s * (1 - _L1_TIME)
            if size and (ns := min(gain, line.kernel_ns - _least_ns(op))) > 0:
                moved[row], saved[row] = size, ns
    through, total = size_text(sum(moved.values())), sum(saved.values())
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{through} of activations go through DRAM, in {counted(len(saved), 'op')}: "
        f"up to {share_of_step(step, total)} of a step",
        arithmetic=f"{through} ÷ {board.dram_gb_s:g} GB/s, less a tenth, but not below "
        f"each op's minimum: {duration(total)}",
    )


def _least_ns(op: Op) -> float:
    """Return what an op takes at least, wherever its operands are."""
    given = op.signature.outputs[:1]
    if op.signature.category is not Category.ELEMENTWISE or not given or not op.cores:
        return 0.0
    return -(-prod(given[0].padded) // _TILE // op.cores) * _TILE_NS


class _Handover(NamedTuple):
    """Activations that an op writes for others, and reads of them."""

    written: tuple[Tensor, ...]
    read: tuple[Tensor, ...]


def _passed(ops: Sequence[OpPlace]) -> list[_Handover]:
    """Return the activations of each op.

    A capture does not name tensors: one that has the shape, dtype and memory of an earlier output
    is taken for it. Caches, which ops write in place and which stay where they are, do not count.
    """
    # Most ops share their signature with others: each is looked at once.
    given_by = {op.signature: tuple(map(look_of, op.signature.outputs)) for _, op in ops}
    caches = {kind for one, out in given_by.items() if _CACHE.search(one.op) for kind in out}
    made: set[tuple[object, ...]] = set()
    taken = [operands_read(op.signature, op.attributes) for _, op in ops]
    reads: list[tuple[Tensor, ...]] = []
    for (_, op), of_op in zip(ops, taken, strict=True):
        reads.append(tuple(each for each in of_op if look_of(each) in made))
        made.update(set(given_by[op.signature]) - caches)
    passed: list[_Handover] = []
    wanted: set[tuple[object, ...]] = set()
    for (_, op), of_op, read in zip(reversed(ops), reversed(taken), reversed(reads), strict=True):
        pairs = zip(op.signature.outputs, given_by[op.signature], strict=True)
        written = tuple(each for each, kind in pairs if kind in wanted and kind not in caches)
        passed.append(_Handover(written, read))
        wanted.update(map(look_of, of_op))
    return passed[::-1]
