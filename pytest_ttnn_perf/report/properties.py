"""The metrics of a test as flat pairs of name and value, for JUnit reports and dashboards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.visible import visible
from pytest_ttnn_perf.model.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.verdict import Verdict

_PREFIX: Final = "ttnn_perf"
_NO_METRIC: Final = "-"
#: Of several verdicts the first of these is the test's.
_WORST: Final = (
    Outcome.NO_DATA,
    Outcome.REGRESSED,
    Outcome.SHIFTED,
    Outcome.TOO_NOISY,
    Outcome.NOT_COMPARABLE,
    Outcome.NO_BASELINE,
    Outcome.IMPROVED,
    Outcome.WITHIN,
)


def property_pairs(judged: JudgedTest, hardware: Hardware | None) -> list[tuple[str, str]]:
    """Return what is known of a test; numbers are in the metric's own unit, as in the record."""
    pairs = []
    own = judged.observation.hardware or hardware
    if own is not None:
        pairs.append((f"{_PREFIX}.key", own.key))
    outcomes = {verdict.outcome for verdict in judged.verdicts}
    pairs += [(f"{_PREFIX}.verdict", each.value) for each in _WORST if each in outcomes][:1]
    for verdict in judged.verdicts:
        # That of a test without any data is of no metric, and said already.
        pairs += _of_verdict(verdict) if verdict.metric.name != _NO_METRIC else []
    judged_names = {verdict.metric.name for verdict in judged.verdicts}
    for name, observed in judged.observation.metrics.items():
        if name not in judged_names and observed.samples:
            pairs += _of_value(name, observed.metric.unit, _middle(observed.samples))
    found = sorted(f.code for f in judged.findings if f.stands)
    pairs += [(f"{_PREFIX}.findings", ",".join(found))] if found else []
    # pytest takes care of values, but not of names.
    return [(visible(name), visible(value)) for name, value in pairs]


def _of_verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    name = f"{_PREFIX}.{verdict.metric.name}"
    yield from _of_value(verdict.metric.name, verdict.metric.unit, verdict.observed)
    yield f"{name}.verdict", verdict.outcome.value
    if verdict.centre is not None:
        yield f"{name}.baseline", _number(verdict.centre)
    if verdict.change_as_read is not None:
        yield f"{name}.change_percent", _percent(verdict.change_as_read)
    if verdict.limit_as_read is not None:
        yield f"{name}.limit_percent", _percent(verdict.limit_as_read)


def _of_value(name: str, unit: str, value: float | None) -> Iterator[tuple[str, str]]:
    if value is not None:
        yield f"{_PREFIX}.{name}", _number(value)
        yield f"{_PREFIX}.{name}.unit", unit


def _middle(samples: tuple[float, ...]) -> float:
    from statistics import median

    return float(median(samples))


def _percent(fraction: float) -> str:
    """Return per cent with four decimals, of which a dashboard needs no more."""
    return _number(round(fraction * 100, 4) + 0.0)


def _number(value: float) -> str:
    return f"{value:.10g}"
