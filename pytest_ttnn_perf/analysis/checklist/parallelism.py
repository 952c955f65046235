"""On how many cores an op works, and how many its tensors have work for."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.savings import LAUNCH_NS, critical_ops
from pytest_ttnn_perf.analysis.ops.roofline import is_dram_sharded, rooflines
from pytest_ttnn_perf.analysis.ops.settings import SHARD_GRID, cores_of, is_grid, settings_in
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.ops import Op, OpTable, Signature, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Report

_TILE: Final = 32
_ROWS: Final = "ROW_MAJOR"
#: What of the bandwidth of DRAM ops reach at best; real DRAM-sharded matmuls do.
_REACHABLE: Final = 0.75
#: Cores exchange what a norm sums up: the shortest of real decode steps take that long.
_NORM_NS: Final = 5_000.0
#: What of its time an op must save: less is lost in what more cores exchange.
_WORTH_IT: Final = 0.25
#: Ops that look for values along whole rows: what they give says nothing of what they read.
_SEARCHES: Final = re.compile(r"^(?:Reduce|ArgMax|TopK|Sampling|Sort|Cum\w*|Accumulation|Prod)$")
#: These work on a core per user, whatever the size of the tensors.
_PER_USER: Final = re.compile(r"cache|decode", re.IGNORECASE)
_SHARDED_L1: Final = re.compile(r"^L1_\w*SHARDED")
NOT_TOLD: Final = "the capture does not tell how many cores there are"


class OnCores(NamedTuple):
    """An op, the cores that it works on, and those that it has work for."""

    row: int
    op: Op
    cores: int
    possible: int
    saved_ns: float

    @property
    def part(self) -> float:
        """The cores in use, of those that it has work for."""
        return self.cores / self.possible

    @property
    def is_worth_it(self) -> bool:
        """Whether more cores make it a good deal shorter, and not only on paper."""
        return self.saved_ns >= self.op.kernel_ns * _WORTH_IT


def available_cores(step: OpTable, report: Report | None) -> int:
    """Return how many cores a device has; 0 where that is not known."""
    devices = report.devices if report is not None else ()
    told = max((device.compute_cores or 0 for device in devices), default=0)
    return step.available_cores or told


def working_cores(op: Op) -> int | None:
    """Return on how many cores an op works; None where that is not told.

    The profiler counts the cores on which a kernel was started. Where the output is sharded in L1,
    those without a shard have nothing to do.
    """
    given = op.signature.outputs[:1]
    if op.cores is None or not given or not _SHARDED_L1.search(given[0].memory):
        return op.cores
    grid = dict(settings_in(op.attributes)).get(SHARD_GRID, "")
    return min(op.cores, cores_of(grid)) if is_grid(grid) else op.cores


def ops_on_cores(step: OpTable, available: int, *, shortest_us: float) -> Iterator[OnCores]:
    """Yield the ops of the slowest device that take at least so long and could be spread.

    Not collectives, which wait for links, not matmuls with DRAM-sharded weights, whose cores follow
    the banks of DRAM, and none whose shapes are not its own.
    """
    lines = rooflines(step)
    for row, op in critical_ops(step):
        if op.kernel_ns < shortest_us * 1000 or lines[row].stale:
            continue
        work = work_units(op.signature)
        cores = working_cores(op) if work else None
        if not cores or not work or is_dram_sharded(op.attributes):
            continue
        possible = max(cores, min(available, work))
        least = max(_shortest_ns(op), (lines[row].dram_ns or 0.0) / _REACHABLE)
        left = max(op.kernel_ns * cores / possible, min(least, op.kernel_ns))
        yield OnCores(row, op, cores, possible, op.kernel_ns - left)


def _shortest_ns(op: Op) -> float:
    return _NORM_NS if category_of(op.signature.op) is Category.NORM else LAUNCH_NS


def searches(signature: Signature) -> bool:
    """Tell whether an op looks for values along rows: the largest, their sum, their order."""
    return _SEARCHES.search(short_code(signature.op)) is not None


@lru_cache(maxsize=4096)
def work_units(signature: Signature) -> int | None:
    """Return into how many parts an op can be cut; None where that is not known.

    That is its tiles: those it gives, or, of one that searches rows, those it reads. Attention and
    what is around it is cut into rows of tiles, a sparse product into the tiles of one expert, and
    what moves rows into rows.
    """
    code = short_code(signature.op)
    if not signature.inputs or not signature.outputs or _PER_USER.search(code):
        return None
    first, given = signature.inputs[0], signature.outputs[0]
    match category_of(signature.op):
        case Category.COLLECTIVE:
            return None
        case Category.ATTENTION:
            return max(_tile_rows(first), _tile_rows(given))
        case Category.MATMUL if "sparse" in code.lower():
            return _tiles(given._replace(padded=given.padded[-2:]))
        case Category.MOVEMENT if given.layout == _ROWS:
            return prod(given.padded[:-1])
    if searches(signature):
        return _tiles(first)
    return max(map(_tiles, signature.outputs))


def _tiles(tensor: Tensor) -> int:
    """Return the tiles of a tensor, or what would be tiles of one in rows."""
    *outer, rows, columns = (1, 1, *tensor.padded)
    return prod(outer) * -(-rows // _TILE) * -(-columns // _TILE)


def _tile_rows(tensor: Tensor) -> int:
    *outer, rows, _ = (1, 1, *tensor.padded)
    return prod(outer) * -(-rows // _TILE)
