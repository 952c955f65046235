"""What a page shows of ops: the time of each kind, beside what the roofline allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import visible
from pytest_ttnn_perf.analysis.ops.grouping import group_ops
from pytest_ttnn_perf.analysis.ops.lanes import middle_lanes
from pytest_ttnn_perf.analysis.ops.names import op_and_function, op_name
from pytest_ttnn_perf.analysis.ops.regions import regions_of
from pytest_ttnn_perf.analysis.ops.roofline import Bound, board_of_arch, group_rooflines
from pytest_ttnn_perf.records.ops import CALLS, OpGroups
from pytest_ttnn_perf.report.page.contents import PageOp, PageRegion, PageRoof

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.records.ops import OpGroup, OpTable

#: Kinds of ops on a page, and of one region: the others of it are summed up. A page of many tests
#: must still open.
_ALL, _LEAST, _MOST = 6_000, 8, 60


def most_ops(regions: int) -> int:
    """Return how many kinds of ops each region of a page may have.

    >>> most_ops(1), most_ops(200), most_ops(5000)
    (60, 30, 8)
    """
    return max(_LEAST, min(_MOST, _ALL // max(regions, 1)))


class Chip(NamedTuple):
    """What ops ran on: an architecture, and how many cores of it compute; None where unknown."""

    arch: str | None
    cores: int | None = None


def regions_of_groups(ops: OpGroups, chip: Chip, *, most: int) -> Iterator[PageRegion]:
    """Yield the regions of an op table of which groups are known; none of one without times."""
    for region in () if ops.kernel_time == CALLS else ops.regions:
        groups = [group for group in ops.of(region).groups if group.total_ns > 0]
        if groups:
            yield PageRegion(
                visible(region),
                time_us=_us(sum(group.total_ns for group in groups)),
                calls=1,
                ops=tuple(_page_ops(groups, chip, most=most)),
                roof=_roof(chip),
            )


def regions_of_table(table: OpTable, *, most: int) -> list[PageRegion]:
    """Return the regions of a capture: of each the middle step, on its slowest device."""
    found: list[PageRegion] = []
    chip = Chip(table.arch, table.available_cores)
    for region in regions_of(table).regions:
        groups = group_ops(table, middle_lanes(table, region)).groups
        named = tuple(replace(group, region=region.name) for group in groups)
        pages = regions_of_groups(OpGroups(table.kernel_time, named), chip, most=most)
        found += [replace(page, calls=len(region.steps)) for page in pages]
    return found


def _roof(chip: Chip) -> PageRoof | None:
    """Return the peaks of a chip; those of computing where it is known how many cores do."""
    board = board_of_arch(chip.arch)
    if board is None:
        return None
    peaks = tuple(
        (fidelity, round(tflops * chip.cores, 1))
        for fidelity, tflops in board.tflops.items()
        if chip.cores
    )
    return PageRoof(board.dram_gb_s, peaks)


class _Kind(NamedTuple):
    """What ops of one rectangle share."""

    name: str
    shape: str
    cores: int | None
    fidelity: str | None


def _page_ops(groups: Sequence[OpGroup], chip: Chip, *, most: int) -> Iterator[PageOp]:
    """Yield the kinds of ops of a region, the longest first, and then the rest as one.

    Their times add up to that of the region.
    """
    kinds: dict[_Kind, list[tuple[OpGroup, Roofline]]] = {}
    for group, line in zip(groups, group_rooflines(groups, chip.arch), strict=True):
        kinds.setdefault(_kind(group), []).append((group, line))
    whole_ns = sum(group.total_ns for group in groups)
    ordered = sorted(kinds.items(), key=lambda item: (-_total_ns(item[1]), item[0][:2]))
    # One more is shown rather than "1 other".
    end = most if len(ordered) > most + 1 else most + 1
    for kind, members in ordered[:end]:
        yield _page_op(kind, members, whole_ns)
    rest = [member for _, members in ordered[end:] for member in members]
    if rest:
        total_ns = _total_ns(rest)
        yield PageOp(
            name=f"{len(ordered) - end} other kinds",
            shape="",
            calls=sum(group.count for group, _ in rest),
            time_us=_us(total_ns),
            share=round(total_ns / whole_ns, 4),
        )


def _kind(group: OpGroup) -> _Kind:
    name = op_and_function(group.signature.op, group.settings)
    shape = op_name(group.signature, group.settings).removeprefix(name).strip()
    return _Kind(name, shape, group.cores, group.fidelity)


def _total_ns(members: Sequence[tuple[OpGroup, Roofline]]) -> float:
    return sum(group.total_ns for group, _ in members)


_BOUNDS: Final = {Bound.DRAM: "dram", Bound.COMPUTE: "compute", Bound.NEITHER: "", None: ""}


def _page_op(kind: _Kind, members: Sequence[tuple[OpGroup, Roofline]], whole_ns: float) -> PageOp:
    total_ns = _total_ns(members)
    ideals = [None if r.least_ns is None else g.count * r.least_ns for g, r in members]
    flops = [
        None if r.stale or r.work.flops is None else g.count * r.work.flops for g, r in members
    ]
    moved = [
        None
        if r.dram_fraction is None or r.work.dram_bytes is None
        else g.count * r.work.dram_bytes
        for g, r in members
    ]
    ideal_ns, operations, moved_bytes = _sum(ideals), _sum(flops), _sum(moved)
    bounds = {_bound(line) for _, line in members}
    notes = [visible(kind.fidelity)] if kind.fidelity else []
    if any(line.stale for _, line in members):
        notes.append("with these shapes it would be faster than the chip: they are not its own")
    return PageOp(
        name=visible(kind.name),
        shape=visible(kind.shape),
        calls=sum(group.count for group, _ in members),
        time_us=_us(total_ns),
        share=round(total_ns / whole_ns, 4),
        ideal_us=None if ideal_ns is None else _us(ideal_ns),
        bound=bounds.pop() if len(bounds) == 1 else "",
        cores=kind.cores,
        intensity=_digits(operations / moved_bytes) if operations and moved_bytes else None,
        tflops=_digits(operations / total_ns / 1000) if operations else None,
        note="; ".join(notes),
    )


def _bound(line: Roofline) -> str:
    if line.bound is Bound.BOTH:
        return "dram" if (line.dram_ns or 0.0) >= (line.compute_ns or 0.0) else "compute"
    return _BOUNDS[line.bound]


def _sum(values: Sequence[float | None]) -> float | None:
    """Return a sum; None where a part of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _us(ns: float) -> float:
    return round(ns / 1000, 3)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
