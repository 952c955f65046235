"""Two captures with op tables, side by side: which ops make up the change of each region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf.analysis.captures.detect import op_table_of
from pytest_ttnn_perf.analysis.captures.differences import hardware_changes, told_by_ops
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.analysis.ops.align import attribute
from pytest_ttnn_perf.analysis.ops.regions import region_named, regions_of, step_times_ns
from pytest_ttnn_perf.records.attribution import CaptureComparison, Unmatched
from pytest_ttnn_perf.records.metric import median

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.region import Region


def compare_captures(
    before: Path,
    after: Path,
    *,
    start: str | None = None,
    end: str | None = None,
    region: str | None = None,
) -> CaptureComparison:
    """Say which ops make up the change of each region that both captures have.

    Those of one name belong together, and so do the only ones of their captures. Captures that
    have no region in common are compared as a whole, and that is said.

    Raises:
        InputError: one holds no op table, is damaged, or cannot be what a device did.
        UsageError: they hold different times, or do not have the window or the region.
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
    differs = hardware_changes(told_by_ops(first), told_by_ops(second))
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
        Unmatched(side, each.name, median(step_times_ns(table, each)))
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
