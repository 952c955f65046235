"""What is particular about numbers: notes on them, and why some are not gated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.report.layout import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.records.observation import JudgedTest, MetricObservation


def recorded_only(judged: JudgedTest) -> list[str]:
    """Return the metrics of a test that have no verdict."""
    gated = {verdict.metric.name for verdict in judged.verdicts}
    return [name for name in judged.observation.metrics if name not in gated]


#: How the time is called that no region of a capture has: nobody gates it, so it is always named.
_OUTSIDE: Final = ".outside"


def note_lines(tests: Sequence[JudgedTest], *, verbose: bool) -> Iterator[Line]:
    """Say what is particular about numbers that passed; what several tests share, once.

    Of what was only recorded that is said if it is to be ``verbose``, of what could not be measured
    in one line.
    """
    found: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for judged in tests:
        noted = {v.metric.name for v in judged.verdicts if v.detail is not None}
        recorded = recorded_only(judged)
        for name, observed in judged.observation.metrics.items():
            if not observed.note or name in noted:
                continue
            if not observed.samples and not verbose:
                lacking.setdefault(observed.note, []).append(judged.observation.test)
            elif verbose or name not in recorded or name.endswith(_OUTSIDE):
                note = f"{name}: {observed.note}"
                found.setdefault(note, []).append(judged.observation.test)
    yield from (Line(f"note {_where(names)}: {note}") for note, names in found.items())
    if lacking:
        names = [name for own in lacking.values() for name in own]
        why = next(iter(lacking)) if len(lacking) == 1 else "-v says why"
        yield Line(f"not measured {_where(names)}: {why}")


def _where(tests: Sequence[str]) -> str:
    names = dict.fromkeys(tests)
    return next(iter(names)) if len(names) == 1 else counted(len(names), "test")


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
