"""The ops of a capture one by one, as a table of them shows: what each took, and of what peak."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.ops.layers import find_layers
from pytest_ttnn_perf.analysis.ops.names import op_name, operands_text
from pytest_ttnn_perf.analysis.ops.regions import middle_steps, regions_of, slowest_rows
from pytest_ttnn_perf.analysis.ops.roofline import rooflines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.layers import Layers
    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.records.ops import Op, OpTable
    from pytest_ttnn_perf.records.region import Region


class OpRow(NamedTuple):
    """One op. What a capture does not tell is None, and so is what cannot be told of the op.

    ``number`` is its id: its place in the whole capture, from 1. ``name`` says what it computes on
    which shapes. The fractions are of the chip's DRAM bandwidth, and of what its cores compute at
    its fidelity. ``bound`` is what it cannot go below. ``stale``: with these shapes it would be
    faster than the chip, so they are not its own. ``region`` and ``step`` are where it belongs.
    """

    number: int
    region: str | None
    step: int | None
    device: int
    op: str
    name: str
    operands: str
    kernel_ns: float
    gap_ns: float | None
    cores: int | None
    fidelity: str | None
    dram_bytes: float | None
    dram_gb_s: float | None
    dram_fraction: float | None
    flops: float | None
    tflops: float | None
    compute_fraction: float | None
    bound: str | None
    stale: bool


@dataclass(frozen=True, slots=True)
class OpView:
    """One step of a region, as its slowest device ran it; ``layers`` are places in ``rows``."""

    region: Region
    step: int
    device: int
    rows: Sequence[OpRow]
    layers: Sequence[Layers]

    @property
    def kernel_ns(self) -> float:
        """What the ops took in all."""
        return sum(row.kernel_ns for row in self.rows)

    @property
    def gaps_ns(self) -> float | None:
        """What passed between them, where a capture tells; below zero is an artefact of clocks."""
        gaps = [row.gap_ns for row in self.rows[1:] if row.gap_ns is not None]
        return sum(max(gap, 0.0) for gap in gaps) if gaps else None


def op_rows(table: OpTable) -> list[OpRow]:
    """Return all ops of a table, in their order."""
    lines, places = rooflines(table), _places(table)
    names: dict[tuple[int, int], tuple[str, str]] = {}
    found = []
    for at, op in enumerate(table):
        key = table.columns.signature[at], table.columns.attributes[at]
        words = names.get(key)
        if words is None:
            operands = operands_text(op.signature)
            words = names[key] = (op_name(op.signature, op.attributes), operands)
        found.append(_row(op, words, places.get(at, (None, None)), lines[at]))
    return found


def _places(table: OpTable) -> Mapping[int, tuple[str, int]]:
    """Return the region of each row that has one, and its step, from 1."""
    return {
        row: (region.name, number)
        for region in regions_of(table).regions
        for number, step in enumerate(region.steps, start=1)
        for rows in step.values()
        for row in rows
    }


def _row(
    op: Op, words: tuple[str, str], place: tuple[str | None, int | None], line: Roofline
) -> OpRow:
    moved = None if line.work.at_most else line.work.dram_bytes
    flops, kernel_ns = line.work.flops, line.kernel_ns
    known = bool(kernel_ns) and not line.stale
    return OpRow(
        number=op.number,
        region=place[0],
        step=place[1],
        device=op.device,
        op=op.signature.op,
        name=words[0],
        operands=words[1],
        kernel_ns=kernel_ns,
        gap_ns=op.gap_ns,
        cores=op.cores,
        fidelity=op.fidelity,
        dram_bytes=moved,
        dram_gb_s=moved / kernel_ns if known and moved is not None else None,
        dram_fraction=line.dram_fraction,
        flops=flops,
        tflops=flops / kernel_ns / 1000 if known and flops is not None else None,
        compute_fraction=line.compute_fraction,
        bound=line.bound.value if line.bound else None,
        stale=line.stale,
    )


def op_views(table: OpTable, rows: Sequence[OpRow]) -> Iterator[OpView]:
    """Yield a step of each region of a table: that of median time, on its slowest device."""
    signature = table.columns.signature
    for region in regions_of(table).regions:
        step = middle_steps(table, region)[0]
        chosen = slowest_rows(table, step)
        own = [rows[at] for at in chosen]
        kinds = [(signature[at], rows[at].name) for at in chosen]
        numbers: dict[object, int] = {}
        layers = find_layers([numbers.setdefault(kind, len(numbers)) for kind in kinds])
        at = region.steps.index(step) + 1
        yield OpView(region, at, table.columns.device[chosen[0]], own, layers)


def layer_rows(view: OpView, layers: Layers) -> list[OpRow]:
    """Return the ops of a layer, each as the first of them with the medians of all."""
    block = view.rows[layers.start : layers.stop]
    return [_middle(block[at :: layers.length]) for at in range(layers.length)]


def _middle(rows: Sequence[OpRow]) -> OpRow:
    return rows[0]._replace(
        kernel_ns=median(row.kernel_ns for row in rows),
        gap_ns=_median(row.gap_ns for row in rows),
        dram_gb_s=_median(row.dram_gb_s for row in rows),
        dram_fraction=_median(row.dram_fraction for row in rows),
        tflops=_median(row.tflops for row in rows),
        compute_fraction=_median(row.compute_fraction for row in rows),
        bound=Counter(row.bound for row in rows).most_common(1)[0][0],
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
