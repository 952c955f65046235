"""Compare captures: ops, tt-lang programs, hardware."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.analysis.ops.align import Attribution, attribute
from pytest_ttnn_perf.analysis.ops.regions import (
    region_named,
    regions_of,
    step_times_ns,
    why_invalid,
)
from pytest_ttnn_perf.analysis.readers.detect import op_table_of
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.metric import median

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.ops.regions import Region
    from pytest_ttnn_perf.analysis.readers.ttlang import ProgramPerf, TtlangLog
    from pytest_ttnn_perf.core.ops import OpTable


class UnmatchedRegion(Struct, frozen=True):
    """A region of only one capture, and its step time."""

    side: str
    region: str
    step_ns: float


class CaptureComparison(Struct, frozen=True):
    """Two captures, region by region; ``notes`` name what is particular about them."""

    regions: tuple[Attribution, ...]
    unmatched: tuple[UnmatchedRegion, ...] = ()
    notes: tuple[str, ...] = ()


# Two captures with op tables, side by side: which ops make up the change of each region.


def compare_captures(
    before: Path,
    after: Path,
    *,
    start: str | None = None,
    end: str | None = None,
    region: str | None = None,
) -> CaptureComparison:
    """Attribute the change of each region that both captures have.

    Those of one name belong together, and so do the only ones of their captures. Captures that
    have no region in common are compared as a whole, and that is said.
    """
    first, second = (op_table_of(file, start=start, end=end) for file in (before, after))
    if first.kernel_time != second.kernel_time:
        message = (
            f"the captures hold different times: {before.name} has {first.kernel_time}, "
            f"{after.name} has {second.kernel_time}"
        )
        raise UsageError(message)
    for file, table in ((before, first), (after, second)):
        problem = why_invalid(table)
        if problem is not None:  # no op of it can be trusted
            raise InputError(file, f"{problem}; capture it again")
    differs = hardware_changes(platform_of_ops(first), platform_of_ops(second))
    notes = (f"not the same hardware: {', '.join(differs)}",) if differs else ()
    if region is not None:
        pair = region_named(first, region, before.name), region_named(second, region, after.name)
        return CaptureComparison((attribute(first, second, pair),), notes=notes)
    ours, theirs = regions_of(first).regions, regions_of(second).regions
    pairs = _pairs(ours, theirs)
    if not pairs:
        note = "they have no region in common: compared as a whole, mean of the devices"
        return CaptureComparison((attribute(first, second),), notes=(*notes, note))
    paired = [region for pair in pairs for region in pair]
    alone = [
        UnmatchedRegion(side, each.name, median(step_times_ns(table, each)))
        for side, table, regions in (("before", first, ours), ("after", second, theirs))
        for each in regions
        if not any(each is other for other in paired)
    ]
    changes = tuple(attribute(first, second, pair) for pair in pairs)
    return CaptureComparison(changes, unmatched=tuple(alone), notes=notes)


def _pairs(ours: Sequence[Region], theirs: Sequence[Region]) -> list[tuple[Region, Region]]:
    by_name = {region.name: region for region in theirs}
    common = [(region, by_name[region.name]) for region in ours if region.name in by_name]
    alone = len(ours) == len(theirs) == 1
    return common or ([(ours[0], theirs[0])] if alone else [])


# What two logs of tt-lang differ in: the programs, what bounds them, and the lines of kernels.


def program_changes(before: TtlangLog, after: TtlangLog) -> tuple[str, ...]:
    """Return changes of grids and bounds, in words.

    Programs are matched by their place in the last summary: their ids count all that ran before.
    """
    texts: list[str] = []
    if before.perf_summaries and after.perf_summaries:
        first, second = (log.perf_summaries[-1].programs for log in (before, after))
        if len(first) != len(second):
            texts.append(f"{len(first)} → {len(second)} programs")
        else:
            for then, now in zip(first, second, strict=True):
                texts += _program_changes(then, now)
    bounds = [_bound(log) for log in (before, after)]
    if None not in bounds and bounds[0] != bounds[1]:
        texts.append(f"bound: {bounds[0]} → {bounds[1]}")
    return tuple(texts)


def _program_changes(then: ProgramPerf, now: ProgramPerf) -> Iterator[str]:
    name = now.name or then.name or f"program {now.program_id}"
    if then.grid != now.grid or then.cores != now.cores:
        grids = ["{}x{}".format(*program.grid) for program in (then, now)]
        yield f"{name}: grid {grids[0]} → {grids[1]}"
    if then.dram_channels and now.dram_channels and then.dram_channels != now.dram_channels:
        yield f"{name}: {then.dram_channels} → {now.dram_channels} DRAM channels"
    sizes = [", ".join(f"{size.bytes} B" for size in p.transfer_sizes) for p in (then, now)]
    if all(sizes) and sizes[0] != sizes[1]:
        yield f"{name}: transfers of {sizes[0]} → {sizes[1]}"


def _bound(log: TtlangLog) -> str | None:
    lines = [profile.roofline for profile in log.auto_profiles if profile.roofline is not None]
    if not lines or lines[-1].bound is None:
        return None
    apart = lines[-1].bound_percent
    return lines[-1].bound if apart is None else f"{lines[-1].bound} ({apart} %)"


class LineChange(NamedTuple):
    """Cycles of a kernel's line in both logs; None if missing."""

    thread: str
    source: str
    before: int | None
    after: int | None

    @property
    def delta(self) -> int:
        return (self.after or 0) - (self.before or 0)


def line_changes(before: TtlangLog, after: TtlangLog) -> tuple[LineChange, ...]:
    """Return the lines whose cycles changed, the largest change first.

    Cycles are sums over cores and iterations. Lines are known by their text: the profiler sums up
    equal ones, and numbers move with every edit.
    """
    ours, theirs = _cycles(before), _cycles(after)
    changes = (LineChange(*key, ours.get(key), theirs.get(key)) for key in {**ours, **theirs})
    changed = (change for change in changes if change.delta)
    return tuple(sorted(changed, key=lambda change: (-abs(change.delta), change[:2])))


def _cycles(log: TtlangLog) -> Mapping[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for profile in log.auto_profiles[-1:]:  # each is of all calls until then
        for thread in profile.threads:
            name = f"{thread.thread} {thread.kernel or ''}".rstrip()
            for line in thread.lines:
                if line.total_cycles:
                    found[name, line.source.strip()] = line.total_cycles
    return found


#: A clock by the time of one op is right within this part of it.
_SAME_CLOCK: Final = 0.01


class Platform(NamedTuple):
    """The hardware of a capture; None for unknown properties."""

    architecture: str | None = None
    board: str | None = None
    devices: int | None = None
    cores: int | None = None
    clock_mhz: float | None = None


def platform_of_ops(table: OpTable) -> Platform:
    devices, cores = len(table.devices) or None, table.available_cores
    return Platform(table.arch, devices=devices, cores=cores, clock_mhz=table.clock_mhz)


def platform_of_log(log: TtlangLog) -> Platform:
    if not log.perf_summaries:
        return Platform()
    last = log.perf_summaries[-1]
    return Platform(last.arch, cores=last.max_compute_cores or None, clock_mhz=last.clock_mhz)


def hardware_changes(before: Platform, after: Platform) -> tuple[str, ...]:
    """Return the differences of two platforms, in words; unknown properties are none.

    >>> hardware_changes(Platform("wormhole_b0", cores=1), Platform("blackhole", devices=1))
    ('architecture wormhole_b0 → blackhole',)
    """
    texts = []
    for name, then, now in zip(Platform._fields, before, after, strict=True):
        if then is None or now is None or then == now:
            continue
        if isinstance(then, float) and isinstance(now, float):
            if abs(then - now) > _SAME_CLOCK * then:
                texts.append(f"clock {then:g} → {now:g} MHz")
        else:
            texts.append(f"{name} {then} → {now}")
    return tuple(texts)
