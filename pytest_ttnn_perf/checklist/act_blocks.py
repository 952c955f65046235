"""How many rows of its output a convolution works on at a time, and how many it could."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.checklist.attributes import whole
from pytest_ttnn_perf.checklist.convolutions import is_convolution, report_convolutions
from pytest_ttnn_perf.checklist.op_times import described, ops_like
from pytest_ttnn_perf.checklist.report_operations import budget_bytes, called
from pytest_ttnn_perf.checklist.residency import sharding_in
from pytest_ttnn_perf.model.report import BufferType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.report import Operation, Report, TensorRecord

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
    def is_told(self) -> bool:
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
            yield ActBlock(described(op), _in_rows(height), _in_rows(most))


def _in_rows(tiles: int | None) -> int | None:
    return None if tiles is None else tiles * TILE_ROWS


def blocks_in_report(report: Report) -> Iterator[ActBlock]:
    """Yield the blocks that convolutions were asked for, with what they take of L1."""
    for operation in report_convolutions(report):
        output = next((report.tensors.get(number) for number in operation.outputs), None)
        if output is None or sharding_in(output.memory) != "WIDTH":
            most = _rows_of_core(output)
            yield ActBlock(
                called(report, operation),
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
