"""Matrix products and convolutions: their configuration, blocks and cores."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import (
    heaviest_numbers,
    kernel_ns,
    op_name,
    ops_like,
)
from pytest_ttnn_perf.analysis.checklist.residency import budget_bytes, operation_name, sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import size_of
from pytest_ttnn_perf.records.finding import Evidence
from pytest_ttnn_perf.records.ops import Category, category_of
from pytest_ttnn_perf.records.ttnn_report import BufferType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Limit
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable, Signature, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report, TensorRecord


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
