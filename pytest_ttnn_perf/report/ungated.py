"""What was recorded and is not gated, and why: in a line, or by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.report.layout import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.records.observation import JudgedTest, MetricObservation


def reasons_by_name(metrics: Iterable[MetricObservation]) -> Iterator[str]:
    """Say why metrics are recorded and not gated, where that is known; each reason once."""
    names: dict[str, dict[str, None]] = {}
    for observed in metrics:
        if not observed.gated and observed.why_ungated is not None:
            names.setdefault(observed.why_ungated, {})[observed.metric.name] = None
    for why, those in names.items():
        yield f"not gated, {why}: {', '.join(those)}"


def ungated_lines(tests: Iterable[JudgedTest], *, verbose: bool) -> Iterator[Line]:
    """Say what is not gated, by reason: all of it if it is to be ``verbose``, else how many."""
    from pytest_ttnn_perf.report.terminal import recorded_only

    reasons: dict[str, list[str]] = {}
    for judged in tests:
        for name in recorded_only(judged):
            why = judged.observation.metrics[name].why_ungated
            if why is not None:
                reasons.setdefault(why, []).append(f"{judged.observation.test}: {name}")
    if not reasons:
        return
    ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    total = counted(sum(map(len, reasons.values())), "number")
    if not verbose:
        told = "; ".join(f"{len(names)}: {why}" for why, names in ordered)
        yield Line(f"recorded, not gated, and why: {total} ({told})")
        return
    yield Line(f"recorded, not gated, and why: {total}")
    for why, names in ordered:
        yield Line(f"  {why}:")
        yield from (Line(f"    {name}") for name in names)
