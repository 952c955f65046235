"""Matrix products and convolutions: their configuration, blocks and cores."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.op_times import (
    op_name,
)
from pytest_ttnn_perf.analysis.checklist.operands import (
    PRODUCTS,
    weights_by_row,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    check_savings,
    critical_ops,
)
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import (
    batches_apart,
    board_of,
    board_of_arch,
    is_dram_sharded,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.core.ops import Category
from pytest_ttnn_perf.core.text import microseconds, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import OpPlace
    from pytest_ttnn_perf.analysis.ops.roofline import Board, Roofline
    from pytest_ttnn_perf.core.finding import Answer, Limit
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Tensor


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


_BOARDS: Final = [board for board in map(board_of_arch, ("wormhole", "blackhole")) if board]
#: What a core of any known chip computes at most, by fidelity.
_FASTEST: Final = {name: max(board.tflops[name] for board in _BOARDS) for name in _BOARDS[0].tflops}
#: The rows of a tile.
TILE_ROWS: Final = 32


class Product(NamedTuple):
    """A matmul or convolution of a step, with its weights in DRAM."""

    row: int
    op: Op
    line: Roofline
    weights: Tensor | None

    @property
    def first(self) -> Tensor | None:
        """The first operand."""
        return self.op.signature.inputs[0] if self.op.signature.inputs else None

    @property
    def reads_again(self) -> str:
        """Remedy if most of its reads are repeated; "" if not."""
        moved, again = self.line.work.dram_bytes or 0.0, self.line.work.again_bytes
        if self.weights is None or again <= moved / 2:
            return ""
        remedy = (
            "raise `out_block_h` towards `per_core_M`, with a smaller `out_block_w` if L1 is full"
        )
        if batches_apart(self.op.signature, self.op.attributes) > 1:
            remedy = "lay the batches out as rows of one matrix, or set `fuse_batch`"
        return f"{remedy}: the weights are read {self.line.work.passes} times"

    @property
    def least_ns(self) -> float | None:
        """The least time; on an unknown chip, the ideal of the profiler.

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
        if op.signature.category in PRODUCTS
    )


def matmuls_of(step: OpTable) -> Sequence[Product]:
    """Return the dense matmuls of the device that takes longest."""
    return tuple(each for each in products_of(step) if is_dense_matmul(each.op.signature))


def unknown_chip(table: OpTable) -> str:
    """Reason of rules that need the peaks of a chip."""
    return f"the peaks of {table.arch or 'an unnamed architecture'} are not known"


def no_roofline(table: OpTable, noun: str) -> str:
    """Say why nothing can be compared with the roofline of some products."""
    known = board_of(table) is not None
    return f"no {noun} gives its operands, cores and fidelity" if known else unknown_chip(table)


def best_known(table: OpTable) -> str:
    """Return what ops are compared with, in words."""
    return "the profiler's ideal" if board_of(table) is None else "the roofline"


def check_shortfall(
    step: OpTable,
    slow: Sequence[Product],
    share: Limit,
    efficiency: Limit,
    *,
    sentence: str,
    name: Callable[[OpPlace], str] = lambda placed: op_name(placed.op),
) -> Answer:
    """Compare the saving at a part of the roofline with a limit."""
    saved = {each.row: shortfall_ns(each, efficiency.value) for each in slow}
    took = sum(each.op.kernel_ns for each in slow)
    left = microseconds(took - sum(saved.values()))
    at = f"{percent(efficiency.value)} of {best_known(step)}"
    return check_savings(
        step,
        saved,
        share,
        sentence=sentence,
        arithmetic=f"{microseconds(took)} − {left} at {at}",
        name=name,
    )


def shortfall_ns(product: Product, efficiency: float) -> float:
    """Time above a part of the roofline; 0 if unknown."""
    if product.least_ns is None:
        return 0.0
    return max(0.0, product.op.kernel_ns - max(product.least_ns / efficiency, LAUNCH_NS))


def dram_sharded_ns(matmul: Product, board: Board) -> float | None:
    """Time of a matmul with DRAM-sharded weights; None if impossible.

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
    """Saving by DRAM-sharded weights, of a matmul that reads slowly."""
    if board is None or matmul.weights is None:
        return 0.0
    took, sharded = matmul.op.kernel_ns, dram_sharded_ns(matmul, board)
    if sharded is None or size_of(matmul.weights) >= _FAR_BELOW * board.dram_gb_s * took:
        return 0.0
    return max(0.0, took - sharded)


def has_small_blocks(op: Op, inner: float = 2, subblock: float = 2) -> bool:
    """Return whether a matmul with more tiles works on fewer than these."""
    width, area = inner_block(op), output_subblock(op)
    shape = op.signature.inputs[0].padded if op.signature.inputs else ()
    can_be_wide = not shape or shape[-1] > TILE_ROWS
    can_be_large = [whole(op.attributes, key) for key in ("per_core_M", "per_core_N")] != [1, 1]
    is_narrow = width is not None and width < inner and can_be_wide
    return is_narrow or (area is not None and area < subblock and can_be_large)


def inner_block(op: Op) -> int | None:
    """Tiles of the inner block of a matmul; None if unknown."""
    return whole(op.attributes, "in0_block_w", "K_block_size")


def output_subblock(op: Op) -> int | None:
    """Tiles of the output subblock of a matmul; None if unknown."""
    height = whole(op.attributes, "out_subblock_h", "subblock_h")
    width = whole(op.attributes, "out_subblock_w", "subblock_w")
    return None if height is None or width is None else height * width


#: How a value is written that was not set.
_UNSET: Final = frozenset({"", "std::nullopt", "nullopt", "None"})
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


@lru_cache(maxsize=4096)
def setting(attributes: str, key: str) -> str | None:
    """Return the value of a key; "" if unset, None if missing.

    >>> setting("{'program_config': 'Reuse(in0_block_w=2)'; 'bias': 'std::nullopt'}", "bias")
    ''
    >>> setting("{'program_config': 'Reuse(in0_block_w=2)'}", "program_config")
    'Reuse'
    """
    found = _pattern(key).search(attributes)
    if found is None:
        return None
    return "" if found[1] in _UNSET else found[1]


def whole(attributes: str, *keys: str) -> int | None:
    """Return the whole number of the first key that has one.

    >>> whole("Config(in0_block_w=2;per_core_M=1)", "K_block_size", "in0_block_w")
    2
    """
    values = (setting(attributes, key) for key in keys)
    return next((int(value) for value in values if value and _WHOLE.fullmatch(value)), None)


def flag(attributes: str, key: str) -> bool | None:
    """Return whether something is switched on; None if unknown.

    >>> flag("{'enable_act_double_buffer': 'false'}", "enable_act_double_buffer")
    False
    """
    return _FLAGS.get((setting(attributes, key) or "").lower())


@lru_cache(maxsize=64)
def _pattern(key: str) -> re.Pattern[str]:
    # Not as the end of a longer name, nor before the :: of a type. The name stands first, and what
    # may not be before it is asked afterwards: texts are long, and a plain start is found quickly.
    name = re.escape(key)
    return re.compile(
        rf"""{name}(?<![\w.]{name})(?!\w)['"]?\s*[=:](?!:)\s*['"]?([^\s;,'"(){{}}\[\]]*)"""
    )


#: Why rules about matrix products say nothing of a program without any.
NO_MATMULS: Final = "no matmuls"


def is_matmul(signature: Signature) -> bool:
    """Return whether an op is a matrix product, fused or not."""
    return signature.category is Category.MATMUL


def is_dense_matmul(signature: Signature) -> bool:
    """Return whether an op is a matrix product that skips no blocks."""
    return is_matmul(signature) and "sparse" not in signature.op.lower()


def program_config(op: Op) -> str | None:
    """Type of the program config; "" if unset, None if missing."""
    found = setting(op.attributes, "program_config")
    return setting(op.attributes, "config") if found is None else found


def is_convolution(signature: Signature) -> bool:
    """Return whether an op is a convolution itself."""
    return signature.category is Category.CONV


def none_long_enough(shortest_us: float) -> str:
    """Reason of rules about cores without ops to judge."""
    return f"no op of {shortest_us:g} µs or more that is to be counted"
