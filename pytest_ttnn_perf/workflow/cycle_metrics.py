"""The cycles in tt-lang's profiles of a kernel: recorded, and never gated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.metric import Metric, Source
from pytest_ttnn_perf.model.observation import MetricObservation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.ttlang import AutoProfile, SignpostProfile, TtlangLog


def cycle_metrics(log: TtlangLog, *, file: str, lost: str | None) -> Iterator[MetricObservation]:
    """Yield the cycles of the slowest thread: in the auto-profile, and in each signpost's zone.

    Sums over cores and iterations, with the profiler's own cycles among them. ``lost`` is why no
    number of the log can be trusted.
    """
    for report in log.auto_profiles[:1]:
        cycles, flaw = report.longest_thread_cycles, lost or _flaw(log.auto_profiles)
        yield _observed("auto_profile_cycles", cycles, file, flaw)
    zones: dict[str, int] = {}
    for profile in log.signpost_profiles:
        for zone in profile.signposts:
            zones[zone.name] = max(zone.total_cycles, zones.get(zone.name, 0))
    for name, total in zones.items():
        flaw = lost or _flaw(log.signpost_profiles)
        yield _observed(f"signpost_cycles_{name}", total, file, flaw)


def _flaw(profiles: Sequence[AutoProfile | SignpostProfile]) -> str | None:
    if not all(profile.complete for profile in profiles):
        return "the profile is cut"
    return "several profiles, each of all calls until then" if len(profiles) > 1 else None


def _observed(name: str, cycles: int | None, file: str, flaw: str | None) -> MetricObservation:
    metric = Metric(name, unit="cycles", source=Source.DEVICE)
    if cycles is None:
        flaw = flaw or "it is not told"
    samples = () if cycles is None or flaw is not None else (cycles,)
    note = None if flaw is None else f"{file}: {flaw}"
    return MetricObservation(metric, samples, gated=False, note=note)
