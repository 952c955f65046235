"""The ops of which it means something how many cores they run on, and how long each works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.checklist.matmuls import is_dram_sharded
from pytest_ttnn_perf.checklist.op_times import ops_like
from pytest_ttnn_perf.model.category import Category, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import Op, OpTable, Signature


def core_ops(table: OpTable, *, shortest_us: float) -> list[Op]:
    """Return the ops of a device that take at least so long.

    Not collectives, which wait for links, and not matmuls with DRAM-sharded weights, whose cores
    follow the banks of DRAM.
    """
    least_ns = shortest_us * 1000
    return [
        op
        for op in ops_like(table, _is_no_collective)
        if op.kernel_ns > 0 and op.kernel_ns >= least_ns and not is_dram_sharded(op)
    ]


def none_long_enough(shortest_us: float) -> str:
    """Say why rules about cores say nothing of a program without such ops."""
    return f"no op of {shortest_us:g} µs or more that is to be counted"


def _is_no_collective(signature: Signature) -> bool:
    return category_of(signature.op) is not Category.COLLECTIVE
