"""What the journal says of a tt-lang kernel."""

from __future__ import annotations

from pytest_ttnn_perf.core.metric import Better, Kind
from pytest_ttnn_perf.experiments.journal import Decision, Effect, Step, journal_listing, ways_of

TEST = "kernel.py::add"


def effect(metric: str, before: float, after: float, kind: Kind = Kind.BYTES) -> Effect:
    change = after / before - 1
    return Effect(TEST, metric, "", Better.LOWER, kind, "IMPROVED", before, after, change)


def test_cores_and_bandwidth_before_and_after_a_step() -> None:
    effects = (
        effect("kernel_time", 54_311, 5_000, Kind.TIME),
        effect("kernel_cores", 4, 64, Kind.COUNT),
        effect("kernel_dram_read_bytes", 524_288, 524_288),
        effect("kernel_dram_write_bytes", 524_288, 524_288),
    )
    step = Step("1", "", "grid", Decision.KEEP, (), "a", "a", "b", "b", "c", 3, effects)
    listing = journal_listing([step], ways_of([step]))
    assert "4 → 64 cores, 19.3 → 209.7 GB/s" in listing.text("table")
