"""What fetching activations from DRAM costs."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf._base.text import size as size_text
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    WORTH_BYTES,
    by_weight,
    if_worth,
)
from pytest_ttnn_perf.analysis.checklist.residency import (
    NO_ACTIVATIONS,
    NO_GRAPHS,
    ROOM,
    activation_operands,
    has_graphs,
    is_fetched,
    l1_bytes,
    round_trips,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.conversions import is_conversion
from pytest_ttnn_perf.analysis.ops.roofline import (
    Bound,
    board_of,
    in_dram,
    operands_read,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity, Subject
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import Op, OpTable, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Report

_L1_BYTES: Final = 1.4e6
#: What L1 takes of the time of DRAM: all cores read their own at once.
_L1_TIME: Final = 0.1
_CACHE: Final = re.compile(r"cache", re.IGNORECASE)
#: An op that uses less of the bandwidth than this waits for something else.
_LIMITED_FROM: Final = 0.4
#: An elementwise op of bfloat16 takes so long for each tile of a core, also from L1.
_TILE_NS: Final = 650.0
_TILE: Final = 32 * 32
_BOUND_BY_COMPUTE: Final = frozenset({Bound.COMPUTE, Bound.BOTH})


@rule("TTP303", "hot-data-in-dram", Severity.WARNING, Input.OPS, Input.REPORT)
def hot_data_in_dram(
    step: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    trips: Limit = Limit(0, "round trips", "a report has no times, so each is named"),
    fetched: Limit = Limit(0.5, "of activation bytes", "a choice: a report has no times"),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Ops hand activations on through DRAM that would fit into L1.

    ## What it finds
    The time that writing activations to DRAM and reading them again can cost: tensors that one op
    of the step makes and another one reads, and that are small enough for L1. Weights do not count,
    nor caches of keys and values. Of a report, which tells no times, tensors that go from L1 to
    DRAM and back, and the part of activations that are read from DRAM though they would fit.

    ## Why it matters
    L1 is next to the cores; all cores together share the bandwidth of DRAM, which weights need.

    ## What to do
    Give the op that makes the tensor an L1 memory config, sharded where the next op takes that.
    Free tensors that are used no more with `ttnn.deallocate`, so that others have room.

    ## What it saves
    The bytes written and read, by the peak bandwidth of DRAM, less a tenth, which L1 takes.
    No elementwise op gets shorter than 0.65 µs for each tile of a core. A tensor that is only where
    the result goes is not read. Nothing of ops that use less than 40 % of that bandwidth, which
    something else holds up, of those that are bound by computing, nor of conversions, which TTP203
    and TTP302 remove.

    ## When it is no problem
    Tensors that are larger than a tenth of all L1 stay in DRAM, and do not count. Those that are
    read much later, as those of a skip connection, may have to.

    ## Where it looks
    Shapes, formats and memory of inputs and outputs in the op table, on the slowest device: an
    input that looks like an earlier output is taken for it. Without a table, the tensors that a
    report database or a captured graph follows from call to call; what DRAM gives in less than
    launching an op takes is no finding.
    """
    if step is None:
        assert report is not None
        return _in_report(report, trips, fetched, worth)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    board = board_of(step)
    if board is None or not step.available_cores:
        return Answer.not_measured("the capture does not give the chip and its cores")
    passed = _passed(critical_ops(step))
    if not any(each.read for each in passed):
        return Answer.not_applicable(NO_ACTIVATIONS)
    most = step.available_cores * _L1_BYTES * ROOM
    lines = rooflines(step)
    moved: dict[int, float] = {}
    for row, written, read in passed:
        line = lines[row]
        waits = (line.dram_fraction or 0.0) >= _LIMITED_FROM and line.bound not in _BOUND_BY_COMPUTE
        if waits and not is_conversion(step.signatures[step.columns.signature[row]].op):
            sizes = (size_of(each) for each in (*written, *read) if in_dram(each))
            moved[row] = sum(size for size in sizes if size <= most)
    ops = dict(critical_ops(step))
    gains = {
        row: min(
            size / board.dram_gb_s * (1 - _L1_TIME), lines[row].kernel_ns - _least_ns(ops[row])
        )
        for row, size in moved.items()
        if size
    }
    saved = {row: ns for row, ns in gains.items() if ns > 0}
    through = size_text(sum(moved[row] for row in saved))
    part = percent(sum(saved.values()) / (step_ns(step) or 1.0))
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{through} of activations go through DRAM, in {counted(len(saved), 'op')}: "
        f"up to {part} of a step",
        arithmetic=f"{through} ÷ {board.dram_gb_s:g} GB/s, less a tenth, but not below "
        "each op's minimum: "
        f"{microseconds(sum(saved.values()))}",
    )


def _least_ns(op: Op) -> float:
    """Return what an op takes at least, wherever its operands are."""
    given = op.signature.outputs[:1]
    if category_of(op.signature.op) is not Category.ELEMENTWISE or not given or not op.cores:
        return 0.0
    return -(-prod(given[0].padded) // _TILE // op.cores) * _TILE_NS


def _in_report(report: Report, trips: Limit, limit: Limit, worth: Limit) -> Answer:
    """Look for round trips first: what they cost is sure, and needs no other memory config."""
    found = [
        trip.told((trip.before.memory, trip.there.memory, trip.after.memory))
        for trip in round_trips(report)
        if trip.before.memory.startswith("L1") and trip.after.memory.startswith("L1")
        if in_dram(trip.there)
    ]
    if len(found) > trips.value:
        sentence = f"{counted(len(found), 'round trip')} from L1 to DRAM and back"
        return trips.found(float(len(found)), sentence, map(Evidence, found))
    if not has_graphs(report):
        return Answer.not_measured(NO_GRAPHS)
    read = list(activation_operands(Subject(report=report), with_producer=True))
    total = sum(each.size for each in read)
    if not total:
        return Answer.not_applicable(NO_ACTIVATIONS)
    size = l1_bytes(report)
    if size is None:
        return Answer.not_measured("the report does not say how much L1 there is")
    fetched = [each for each in read if is_fetched(each, size)]
    moved = sum(each.size for each in fetched)
    answer = limit.at_most(
        moved / total,
        f"{len(fetched)} of {counted(len(read), 'activation')} that ops read lie in DRAM and would "
        f"fit into L1, {percent(moved / total)} of the bytes",
        by_weight(((each.op, each.size) for each in fetched), unit="B"),
    )
    return if_worth(answer, moved, worth)


class _Passed(NamedTuple):
    """What an op writes for others to read, and what it reads of others."""

    row: int
    written: tuple[Tensor, ...]
    read: tuple[Tensor, ...]


def _passed(ops: Sequence[Placed]) -> list[_Passed]:
    """Return the activations of each op.

    A capture does not name tensors: one that has the shape, dtype and memory of an earlier output
    is taken for it. Caches, which ops write in place and which stay where they are, do not count.
    """
    # Most ops share their signature with others: each is looked at once.
    given_by = {op.signature: tuple(map(_kind, op.signature.outputs)) for _, op in ops}
    caches = {kind for one, out in given_by.items() if _CACHE.search(one.op) for kind in out}
    made: set[_Kind] = set()
    taken: list[tuple[Tensor, ...]] = []
    reads: list[tuple[Tensor, ...]] = []
    for _, op in ops:
        taken.append(operands_read(op.signature, op.attributes))
        reads.append(tuple(each for each in taken[-1] if _kind(each) in made))
        made.update(set(given_by[op.signature]) - caches)
    passed: list[_Passed] = []
    wanted: set[_Kind] = set()
    for (row, op), of_op, read in zip(reversed(ops), reversed(taken), reversed(reads), strict=True):
        pairs = zip(op.signature.outputs, given_by[op.signature], strict=True)
        written = tuple(each for each, kind in pairs if kind in wanted and kind not in caches)
        passed.append(_Passed(row, written, read))
        wanted.update(map(_kind, of_op))
    return passed[::-1]


_Kind = tuple[tuple[int, ...], str, str]


def _kind(tensor: Tensor) -> _Kind:
    return (tensor.padded, tensor.dtype, tensor.memory)
