"""Matrix products and convolutions: their configuration, blocks and cores."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.op_times import (
    heaviest_numbers,
    kernel_ns,
    op_name,
    ops_like,
)
from pytest_ttnn_perf.analysis.checklist.operands import (
    PRODUCTS,
    budget_bytes,
    operation_name,
    sharding_in,
    weights_by_row,
)
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
from pytest_ttnn_perf.analysis.readers.report_db import BufferType
from pytest_ttnn_perf.core.finding import Answer, Evidence
from pytest_ttnn_perf.core.ops import Category, category_of
from pytest_ttnn_perf.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Board, Roofline
    from pytest_ttnn_perf.analysis.readers.report_db import Operation, Report, TensorRecord
    from pytest_ttnn_perf.core.finding import Limit, Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Tensor


# The matmuls and convolutions of a step beside their rooflines: what would make them shorter.

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


#: How a value is written that was not set.
_UNSET: Final = frozenset({"", "std::nullopt", "nullopt", "None"})
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


@lru_cache(maxsize=4096)
def setting(attributes: str, key: str) -> str | None:
    """Return the value of a key up to its own arguments: "" if it is not set, None if not told.

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
    """Return whether something is switched on; None where that is not told.

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
    """Tell whether an op is a matrix product, whatever is fused into it."""
    return category_of(signature.op) is Category.MATMUL


def is_dense_matmul(signature: Signature) -> bool:
    """Tell whether a product skips no blocks: its operands say what it reads and computes."""
    return is_matmul(signature) and "sparse" not in signature.op.lower()


def program_config(op: Op) -> str | None:
    """Return the type of a product's program config: "" if it has none, None if not told."""
    found = setting(op.attributes, "program_config")
    return setting(op.attributes, "config") if found is None else found


#: Why rules about convolutions say nothing of a program without any.
NO_CONVOLUTIONS: Final = "no convolutions"
_NAME: Final = re.compile(r"(?:^|\.)conv(?:_transpose)?[123]d$")
#: What ATTRIBUTES call the switches of second buffers.
ACT_BUFFER: Final = "enable_act_double_buffer"
WEIGHTS_BUFFER: Final = "enable_weights_double_buffer"


class Convolution(NamedTuple):
    """A convolution as it ran; None where that is not told.

    ``sharding`` is HEIGHT, WIDTH or BLOCK; ``output`` the shape of what it gives, channels last. A
    report tells no times, and of the double buffers what was asked for. ``number`` is that of the
    op in its capture, or the id of the operation.
    """

    name: str
    device: int
    kernel_ns: float | None
    sharding: str | None
    output: tuple[int, ...] | None
    act_double_buffer: bool | None
    weights_double_buffer: bool | None
    number: int = 0


def convolutions(subject: Subject) -> Sequence[Convolution]:
    """Return the convolutions of the op table or, without one, of the report."""
    if subject.ops is not None:
        return _in_table(subject.ops)
    if subject.report is not None:
        report = subject.report
        return [_from_operation(report, each) for each in report_convolutions(report)]
    return []


def is_convolution(signature: Signature) -> bool:
    """Tell whether an op is a convolution, and not only what prepares one."""
    return category_of(signature.op) is Category.CONV


def report_convolutions(report: Report) -> list[Operation]:
    """Return the operations that ran a convolution; one of 1 by 1 may have run as a matmul.

    Where a report does not say what ran, the operation's name has to do.
    """
    return [operation for operation in report.completed if _convolves(operation)]


def _convolves(operation: Operation) -> bool:
    if not operation.device_operations:
        return _NAME.search(operation.name) is not None
    return any(category_of(name) is Category.CONV for name in operation.device_operations)


@once_per_table
def _in_table(table: OpTable) -> Sequence[Convolution]:
    return tuple(map(_from_op, ops_like(table, is_convolution)))


def _from_op(op: Op) -> Convolution:
    inputs = op.signature.inputs
    return Convolution(
        op_name(op),
        op.device,
        op.kernel_ns,
        sharding_in(inputs[0].memory) if inputs else None,
        output_shape(op),
        flag(op.attributes, ACT_BUFFER),
        flag(op.attributes, WEIGHTS_BUFFER),
        op.number,
    )


def _from_operation(report: Report, operation: Operation) -> Convolution:
    output = next((report.tensors.get(number) for number in operation.outputs), None)
    asked = operation.conv
    # What it gives is cut as what it computes with, unless it goes back to interleaved.
    sharding = sharding_in(output.memory) if output else None
    return Convolution(
        operation_name(report, operation),
        0,
        None,
        sharding or sharding_in(asked.shard_layout if asked else None),
        output.shape if output else None,
        asked.enable_act_double_buffer if asked else None,
        asked.enable_weights_double_buffer if asked else None,
        operation.id,
    )


def output_shape(op: Op) -> tuple[int, ...] | None:
    """Return the shape of what an op gives; None where that is not told."""
    outputs = op.signature.outputs
    return (outputs[0].logical or outputs[0].padded) if outputs else None


#: By height, every core needs all weights: from that size on they do not fit beside the rest of L1.
_WEIGHTS_IN_L1: Final = 700_000.0


def suited_sharding(
    shape: tuple[int, ...] | None,
    weights: Tensor | None = None,
    *,
    tall: float = 4,
    deep: float = 4,
) -> str | None:
    """Return the sharding that goes with the output of a convolution; None where not told.

    It is by height from so many pixels per channel on, if L1 has room for all weights, and by width
    from so many channels per pixel on.
    """
    if not shape or not prod(shape):
        return None
    pixels, channels = prod(shape[:-1]), shape[-1]
    if pixels >= tall * channels:
        return None if weights is not None and size_of(weights) > _WEIGHTS_IN_L1 else "HEIGHT"
    return "WIDTH" if channels >= deep * pixels else "BLOCK"


def settings_to_try(op: Op) -> str:
    """Return the settings of a convolution that are not the usual best, as its evidence has them.

    >>> settings_to_try(op)  # doctest: +SKIP
    'BLOCK → HEIGHT, act_block_h 32 of 3200 rows, no double buffer'
    """
    inputs, text = op.signature.inputs, op.attributes
    sharding = sharding_in(inputs[0].memory) if inputs else None
    best = suited_sharding(output_shape(op), inputs[1] if len(inputs) > 1 else None)
    rows = _in_rows(whole(text, "act_block_h_ntiles"))
    most = _in_rows(whole(text, "per_core_out_matrix_height_ntile"))
    return ", ".join(
        said
        for said, holds in (
            (f"{sharding} → {best}", sharding and best and sharding != best),
            (
                f"act_block_h {rows} of {most} rows",
                rows and most and sharding != "WIDTH" and rows < most,
            ),
            ("no double buffer", flag(text, ACT_BUFFER) is False),
        )
        if holds
    )


def whole_ns(subject: Subject) -> float | None:
    """Return the kernel time that convolutions are a share of; None where none was measured."""
    return kernel_ns(subject.ops) if subject.ops is not None else None


def check_switches(
    switched: Iterable[tuple[Convolution, bool | None]],
    limit: Limit,
    *,
    buffered: str,
    of: float | None,
) -> Answer:
    """Compare the share of convolutions that have something switched off with a limit."""
    known = [(each, on) for each, on in switched if on is not None]
    if not known:
        return Answer.not_measured(
            f"the capture does not say whether {buffered} are double-buffered"
        )
    off = [each for each, on in known if not on]
    reason = f"{buffered} not double-buffered in {len(off)} of {counted(len(known), 'convolution')}"
    return limit.at_most(len(off) / len(known), reason, heaviest(off, of=of))


def heaviest(listed: Iterable[Convolution], *, of: float | None) -> Iterator[Evidence]:
    """Yield evidence of convolutions, those of one name together, the slowest first."""
    times: dict[str, list[float | None]] = defaultdict(list)
    weighed: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for each in listed:
        times[each.name].append(each.kernel_ns)
        weighed[each.name].append((each.kernel_ns or 0.0, each.number))
    totals = {name: sum(time or 0.0 for time in each) for name, each in times.items()}
    for name in sorted(times, key=lambda name: (-totals[name], name)):
        text = f"{len(times[name])} x {name}" if len(times[name]) > 1 else name
        if None in times[name]:
            yield Evidence(text)
        else:
            share = totals[name] / of if of else None
            yield Evidence(text, totals[name], "ns", share, heaviest_numbers(weighed[name]))


#: ``act_block_h_override`` is a multiple of this: the rows of a tile.
TILE_ROWS: Final = 32
#: More than fit into the L1 of any core.
_MOST_ROWS: Final = 2**20


class ActBlock(NamedTuple):
    """The rows of a block and those that a core has; None where not told.

    ``tensor_bytes`` and ``buffer_bytes`` are what tensors and circular buffers take of
    ``l1_bytes``, the L1 of a core.
    """

    name: str
    rows: int | None
    most_rows: int | None
    tensor_bytes: int = 0
    buffer_bytes: int | None = None
    l1_bytes: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether both sizes are known."""
        return self.rows is not None and self.most_rows is not None

    @property
    def is_largest(self) -> bool:
        """Whether no larger block is possible."""
        return self.rows is not None and self.rows >= (self.most_rows or 0)

    @property
    def has_sizes(self) -> bool:
        """Whether it can be told what fits into L1."""
        return self.buffer_bytes is not None and self.l1_bytes is not None

    @property
    def has_room_for_another(self) -> bool:
        """Whether L1 is known to hold the circular buffers twice, those of the block among them."""
        if self.buffer_bytes is None or self.l1_bytes is None:
            return False
        return self.tensor_bytes + 2 * self.buffer_bytes <= self.l1_bytes

    def larger(self, spare: float) -> int | None:
        """Return the largest number of rows that fits and leaves a share of L1 free.

        A block divides the rows of a core. Circular buffers grow with it at most in proportion.
        """
        if not self.rows or not self.most_rows or self.buffer_bytes is None or not self.l1_bytes:
            return None
        room = self.l1_bytes * (1 - spare) - self.tensor_bytes
        for rows in range(self.most_rows, self.rows, -TILE_ROWS):
            if self.most_rows % rows == 0 and self.buffer_bytes * rows / self.rows <= room:
                return rows
        return None


def blocks_in_table(table: OpTable) -> Iterator[ActBlock]:
    """Yield the blocks of convolutions; one that is sharded by width has no choice of them."""
    for op in ops_like(table, is_convolution):
        inputs = op.signature.inputs
        if not inputs or sharding_in(inputs[0].memory) != "WIDTH":
            height = whole(op.attributes, "act_block_h_ntiles")
            most = whole(op.attributes, "per_core_out_matrix_height_ntile")
            yield ActBlock(op_name(op), _in_rows(height), _in_rows(most))


def _in_rows(tiles: int | None) -> int | None:
    return None if tiles is None else tiles * TILE_ROWS


def blocks_in_report(report: Report) -> Iterator[ActBlock]:
    """Yield the blocks that convolutions were asked for, with what they take of L1."""
    for operation in report_convolutions(report):
        output = next((report.tensors.get(number) for number in operation.outputs), None)
        if output is None or sharding_in(output.memory) != "WIDTH":
            most = _rows_of_core(output)
            yield ActBlock(
                operation_name(report, operation),
                _asked_rows(operation, most),
                most,
                operation.bytes_per_bank.get(BufferType.L1, 0),
                operation.cb_bytes_per_core,
                budget_bytes(report),
            )


def _rows_of_core(output: TensorRecord | None) -> int | None:
    shard = output.shard if output is not None else None
    if shard is None or not shard.shape or shard.shape[0] > _MOST_ROWS:
        return None
    # A core works on whole tiles, even if what it gives is not in tiles.
    return -(-shard.shape[0] // TILE_ROWS) * TILE_ROWS


def _asked_rows(operation: Operation, most: int | None) -> int | None:
    asked = operation.conv
    if asked is None:
        return None
    # With a sharding of the author's, 0 is the largest block; otherwise TTNN may choose the least.
    return asked.act_block_h_override or (most if asked.shard_layout else None)


def none_long_enough(shortest_us: float) -> str:
    """Say why rules about cores say nothing of a program without such ops."""
    return f"no op of {shortest_us:g} µs or more that is to be counted"
