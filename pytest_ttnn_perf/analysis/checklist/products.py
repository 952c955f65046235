"""The matmuls and convolutions of a step beside their rooflines: what would make them shorter."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    TILE_ROWS,
    flag,
    is_convolution,
    is_dense_matmul,
    whole,
)
from pytest_ttnn_perf.analysis.checklist.operands import PRODUCTS, weights_by_row
from pytest_ttnn_perf.analysis.checklist.residency import sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.regions import once_per_table, step_of
from pytest_ttnn_perf.analysis.ops.roofline import (
    batches_apart,
    board_of,
    board_of_arch,
    is_dram_sharded,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.records.ops import category_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Limit
    from pytest_ttnn_perf.analysis.ops.roofline import Board, Roofline
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable, Tensor


#: What DRAM-sharded matmuls reach of the bandwidth, and of the peak of the cores at the banks, and
#: what they take beside. Fitted to 28 shapes of real captures, all on Blackhole, which take 0.82 to
#: 1.30 times what follows from it.
READ_AT: Final = 0.9
COMPUTE_AT: Final = 0.8
_BESIDE_NS: Final = 5_000.0
#: Who reads at this part of the bandwidth is not far below it.
_FAR_BELOW: Final = 0.75
#: DRAM-sharded matmuls take the rows of one tile, as a decode step has them.
_FEW_ROWS: Final = 32


def _fastest_tflops() -> dict[str, float]:
    boards = [board for board in map(board_of_arch, ("wormhole", "blackhole")) if board is not None]
    return {name: max(board.tflops[name] for board in boards) for name in boards[0].tflops}


#: What a core of any known chip computes at most, by fidelity.
_FASTEST: Final = _fastest_tflops()


class Product(NamedTuple):
    """A matmul or a convolution of a step; ``weights`` is None where it has none in DRAM."""

    row: int
    op: Op
    line: Roofline
    weights: Tensor | None

    @property
    def first(self) -> Tensor | None:
        """What goes in first."""
        return self.op.signature.inputs[0] if self.op.signature.inputs else None

    @property
    def reads_again(self) -> str:
        """What to do where most of what it reads was read before; "" where it is not so."""
        moved, again = self.line.work.dram_bytes or 0.0, self.line.work.again_bytes
        if self.weights is None or again <= moved / 2:
            return ""
        times = self.line.work.passes
        if batches_apart(self.op.signature, self.op.attributes) > 1:
            return (
                "lay the batches out as rows of one matrix, or set `fuse_batch`: the weights are "
                f"read {times} times"
            )
        return (
            "raise `out_block_h` towards `per_core_M`, with a smaller `out_block_w` if L1 is full: "
            f"the weights are read {times} times"
        )

    @property
    def least_ns(self) -> float | None:
        """The least time: of a chip that is not known, what the profiler calls its ideal.

        The profiler counts a byte for each element of bfloat4_b: that is no ideal. It counts all
        cores of a chip as well; on those in use none is faster than on the fastest chip known.
        """
        work, ideal_ns = self.line.work, self.op.ideal_ns
        if self.line.dram_ns is not None or work.dram_bytes is None or work.at_most:
            return self.line.least_ns
        narrow = self.weights is not None and self.weights.dtype == "BFLOAT4_B"
        if narrow or ideal_ns is None or not self.op.cores:
            return None
        tflops = _FASTEST.get(self.op.fidelity or "", _FASTEST["LoFi"]) * self.op.cores
        return max(ideal_ns, (work.flops or 0.0) / (tflops * 1000))


@once_per_table
def products_of(step: OpTable) -> Sequence[Product]:
    """Return the matmuls and convolutions of the device that takes longest."""
    lines, weights = rooflines(step), weights_by_row(step)
    return tuple(
        Product(row, op, lines[row], weights.get(row))
        for row, op in critical_ops(step)
        if category_of(op.signature.op) in PRODUCTS
    )


def matmuls_of(step: OpTable) -> Sequence[Product]:
    """Return the dense matmuls of the device that takes longest."""
    return tuple(each for each in products_of(step) if is_dense_matmul(each.op.signature))


def unknown_chip(table: OpTable) -> str:
    """Say why rules that compare with the peaks of a chip cannot tell."""
    return f"the peaks of {table.arch or 'an unnamed architecture'} are not known"


def no_roofline(table: OpTable, noun: str) -> str:
    """Say why nothing can be compared with the roofline of some products."""
    if board_of(table) is None:
        return unknown_chip(table)
    return f"no {noun} gives its operands, cores and fidelity"


def best_known(table: OpTable) -> str:
    """Return what ops are compared with, in words."""
    return "the profiler's ideal" if board_of(table) is None else "the roofline"


#: What a convolution with its second buffers reaches of what its cores compute, at best; and from
#: where on there is nothing to gain from them.
_BUFFERED_AT: Final = 0.8
_NEAR_IT: Final = 0.6


def shortfall_ns(product: Product, efficiency: float) -> float:
    """Return how much shorter an op would be with a part of its peak; 0 if that is not known."""
    if product.least_ns is None:
        return 0.0
    return max(0.0, product.op.kernel_ns - max(product.least_ns / efficiency, LAUNCH_NS))


def dram_sharded_ns(matmul: Product, board: Board) -> float | None:
    """Return what a matmul would take with DRAM-sharded weights; None if it cannot have them.

    One core per bank computes: with LoFi if weights are of a block format, else at the fidelity
    that the matmul has.
    """
    weights, first, flops = matmul.weights, matmul.first, matmul.line.work.flops
    if weights is None or first is None or not flops or is_dram_sharded(matmul.op.attributes):
        return None
    if prod(first.padded[:-1]) > _FEW_ROWS or prod(weights.padded[:-2]) > 1 or matmul.line.stale:
        return None
    own = matmul.op.fidelity if matmul.op.fidelity in board.tflops else "HiFi2"
    fidelity = "LoFi" if weights.dtype.endswith("_B") else own
    tflops = board.tflops[fidelity or "HiFi2"] * board.dram_banks
    reading = size_of(weights) / board.dram_gb_s / READ_AT
    return max(reading, flops / (tflops * 1000) / COMPUTE_AT) + _BESIDE_NS


def gains_from_dram_sharding(matmul: Product, board: Board | None) -> float:
    """Return what DRAM-sharded weights would save of a matmul that reads them far too slowly."""
    if board is None or matmul.weights is None:
        return 0.0
    took, sharded = matmul.op.kernel_ns, dram_sharded_ns(matmul, board)
    if sharded is None or size_of(matmul.weights) >= _FAR_BELOW * board.dram_gb_s * took:
        return 0.0
    return max(0.0, took - sharded)


def has_small_blocks(op: Op, inner: float = 2, subblock: float = 2) -> bool:
    """Tell whether a matmul works on fewer tiles at a time than these, and has more of them."""
    width, area = inner_block(op), output_subblock(op)
    shape = op.signature.inputs[0].padded if op.signature.inputs else ()
    can_be_wide = not shape or shape[-1] > TILE_ROWS
    can_be_large = [whole(op.attributes, key) for key in ("per_core_M", "per_core_N")] != [1, 1]
    is_narrow = width is not None and width < inner and can_be_wide
    return is_narrow or (area is not None and area < subblock and can_be_large)


def inner_block(op: Op) -> int | None:
    """Return the tiles of a matmul's inner block; None where not told."""
    return whole(op.attributes, "in0_block_w", "K_block_size")


def output_subblock(op: Op) -> int | None:
    """Return the tiles of a matmul's output subblock; None where not told."""
    height = whole(op.attributes, "out_subblock_h", "subblock_h")
    width = whole(op.attributes, "out_subblock_w", "subblock_w")
    return None if height is None or width is None else height * width


def convolutions_of(step: OpTable) -> Sequence[Product]:
    """Return the convolutions of the device that takes longest."""
    return tuple(each for each in products_of(step) if is_convolution(each.op.signature))


def step_on_known_chip(subject: Subject) -> OpTable | None:
    """Return the step whose ops can be compared with the peaks of a chip; None without one."""
    step = step_of(subject.ops) if subject.ops is not None else None
    return step if step is not None and board_of(step) is not None else None


def check_double_buffers(
    step: OpTable,
    key: str,
    share: Limit,
    hidden_ns: Callable[[Product], float],
    *,
    buffered: str,
    arithmetic: str,
) -> Answer:
    """Compare what second buffers could hide of a step with a limit.

    No convolution gets nearer to its peak than the best of those like it that have them.
    """
    known = [(each, flag(each.op.attributes, key)) for each in convolutions_of(step)]
    told = [(each, on) for each, on in known if on is not None]
    if not told:
        return Answer.not_measured(
            f"the capture does not say whether {buffered} are double-buffered"
        )
    off = [each for each, on in told if not on]
    with_it = [each for each, on in told if on]
    saved = {
        each.row: ns for each in off if (ns := min(hidden_ns(each), _room_ns(each, with_it))) > 0
    }
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{buffered} not double-buffered in {len(off)} of "
        f"{counted(len(told), 'convolution')}",
        arithmetic=f"{arithmetic}: at most {microseconds(sum(saved.values()))}",
    )


def _room_ns(convolution: Product, buffered: Sequence[Product]) -> float:
    """Return how much shorter a convolution can get at most, by those like it that are buffered."""
    computing, reached = convolution.line.compute_ns, convolution.line.compute_fraction
    if computing is None or reached is None or reached >= _NEAR_IT:
        return 0.0
    alike = (each.line.compute_fraction for each in buffered if _kind(each) == _kind(convolution))
    best = max((part for part in alike if part is not None), default=_BUFFERED_AT)
    return convolution.op.kernel_ns - computing / min(best, _BUFFERED_AT)


def _kind(convolution: Product) -> tuple[object, ...]:
    first = convolution.first
    return first and sharding_in(first.memory), convolution.op.fidelity
