"""Moves of the whole machine, by the tests of a run."""

from __future__ import annotations

from math import expm1, log, log1p, sqrt
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.hardware import first_difference
from pytest_ttnn_perf.core.metric import Better, Source, median
from pytest_ttnn_perf.core.observation import NO_LIMITS, Outcome, Reason, Shift, Verdict
from pytest_ttnn_perf.gate.ratios import (
    MAD_TO_SIGMA,
    POLICY,
    band_of,
    histories_of,
    suite_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.core.baseline import MetricBaseline, TestBaseline
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.gate.ratios import Suite
    from pytest_ttnn_perf.gate.store import BaselineStore


class Suites:
    """Suites by hardware key and source, of baselines and a run.

    Times of one source are compared with each other alone: a kernel does not wait for a busy host.
    """

    def __init__(self, store: BaselineStore) -> None:
        self.store = store
        self._known: dict[Hardware, dict[Source, Suite]] = {}

    def of(self, hardware: Hardware) -> Mapping[Source, Suite]:
        """Return what the times of each source show."""
        if hardware not in self._known:
            found: dict[Source, list[MetricBaseline]] = {}
            for test in self.store.neighbours(hardware):
                for source, baseline in speakers(test).items():
                    found.setdefault(source, []).append(baseline)
            self._known[hardware] = {
                source: suite_of(baselines) for source, baselines in found.items()
            }
        return self._known[hardware]

    def see(self, tests: Iterable[tuple[Hardware, Observation]]) -> Shift | None:
        """Look at first measurements; return the shift of the machine."""
        seen: dict[tuple[Hardware, Source], list[tuple[float, float]]] = {}
        for hardware, observation in tests:
            baseline = self.store.find(hardware, observation.test)
            if baseline is None or observation.ended:
                continue
            if first_difference(observation.setting, baseline.configuration) is not None:
                continue
            for source, stored in speakers(baseline).items():
                suite = self.of(hardware).get(source)
                change = _change(stored, observation, suite) if suite else None
                if change is not None:
                    seen.setdefault((hardware, source), []).append(change)
        shifts = []
        for hardware in {hardware for hardware, _ in seen}:
            suites = dict(self.of(hardware))
            for source, suite in suites.items():
                suites[source], shift = _seen(suite, seen.get((hardware, source), []), source)
                if shift is not None:
                    shifts.append(shift)
            self._known[hardware] = suites
        # Most runs measure by the clock, and that is said first.
        return min(shifts, key=lambda shift: shift.source is not Source.WALL, default=None)

    def excuse_nothing(self, source: Source) -> None:
        """Take the machine to be as ever, for one source."""
        for suites in self._known.values():
            if source in suites:
                suites[source] = suites[source]._replace(move=0.0)


def speakers(test: TestBaseline) -> dict[Source, MetricBaseline]:
    """Return the time that speaks for a test, for each source.

    One each: a test with many metrics has no more to say of the machine than one with few.
    """
    found: dict[Source, MetricBaseline] = {}
    for _, baseline in sorted(test.metrics.items()):
        if baseline.metric.compared_by_ratio and not baseline.metric.totals:
            found.setdefault(baseline.metric.source, baseline)
    return found


def _change(
    stored: MetricBaseline, observation: Observation, suite: Suite
) -> tuple[float, float] | None:
    """Return the change of a first measurement, and its deviation."""
    observed = observation.metrics.get(stored.metric.name)
    if observed is None or stored.metric.differs_from(observed.metric) or not observed.samples:
        return None
    if observed.metric.source is not stored.metric.source:
        return None
    if not all(0 < sample <= LARGEST for sample in observed.samples):
        return None
    band = band_of(stored, NO_LIMITS, suite=suite, passes=1)
    sign = -1.0 if stored.metric.better is Better.HIGHER else 1.0
    return sign * log(median(observed.samples)) - band.centre, band.deviation


def _seen(
    suite: Suite, seen: Sequence[tuple[float, float]], source: Source
) -> tuple[Suite, Shift | None]:
    """Return a suite in a run with these changes, and its shift.

    The machine has moved as far as three quarters of the tests, or more, have: a change that some
    tests share is theirs.
    """
    count = len(seen)
    if count < POLICY.few:
        return suite._replace(move=None), None
    ordered = sorted(change for change, _ in seen)
    least, most = ordered[count // 4], ordered[-1 - count // 4]
    move = max(least, 0.0) + min(most, 0.0)
    middle = median(ordered)
    apart = MAD_TO_SIGMA * median([abs(change - middle) / own for change, own in seen])
    spread = sqrt((count * apart**2 + POLICY.weight) / (count + POLICY.weight))
    usual = suite.usual_move()
    shift = None
    if abs(move - usual.centre) > usual.limit:
        side = 1 if middle > 0 else -1
        moved = sum(1 for change, _ in seen if side * change > side * middle / 2)
        shift = Shift(expm1(middle), moved, count, source=source)
    return suite._replace(move=move, spread=min(max(spread, 1.0), POLICY.widest)), shift


def bears_out(shift: Shift, move: float) -> bool:
    """Return whether the ``move`` of controls confirms a shift.

    Half of it is enough: where the code is to blame, tests that do not share it have not moved.
    """
    return log1p(move) >= log1p(shift.change) / 2


def explain_by_shift(verdicts: Iterable[Verdict], shift: Shift) -> tuple[Verdict, ...]:
    """Mark verdicts that are only as slow as the machine."""
    return tuple(_explain_by_shift(verdict, shift) for verdict in verdicts)


def _explain_by_shift(verdict: Verdict, shift: Shift) -> Verdict:
    excused = verdict.metric.source is shift.source and (verdict.machine or 0.0) > 0
    if not excused or verdict.outcome not in {Outcome.WITHIN, Outcome.TOO_NOISY}:
        return verdict
    change, machine, limit = verdict.change, verdict.machine, verdict.limit
    assert change is not None
    assert machine is not None
    assert limit is not None
    measured = (1 + change) * (1 + machine) - 1
    if measured <= limit:
        return verdict
    return replace(verdict, outcome=Outcome.SHIFTED, reason=Reason.SHIFTED, change=measured)


def change_again(verdict: Verdict, samples: Sequence[float]) -> float | None:
    """Return the change of a metric that was measured again."""
    if not verdict.metric.compared_by_ratio or not verdict.limit or not verdict.centre:
        return None
    if not samples or not all(0 < sample <= LARGEST for sample in samples):
        return None
    sign = -1.0 if verdict.metric.better is Better.HIGHER else 1.0
    return sign * log(median(samples) / verdict.centre)


#: Tests that are less alike than this may not show what the machine did to each other.
ALIKE: Final = 0.5


def likeness(one: MetricBaseline, other: MetricBaseline) -> float:
    """Return how much two times move together: 1 at best.

    By the correlation of their runs; as long as these are few, by how alike their noise is.
    """
    first, second = (
        dict(zip(history.runs, history.values, strict=True))
        for history in (histories_of(one)[0], histories_of(other)[0])
    )
    common = [run for run in first if run in second]
    pairs = [(first[run], second[run]) for run in common]
    correlation = 0.0
    if len(pairs) > 1:
        middles = [median(values) for values in zip(*pairs, strict=True)]
        apart = [(a - middles[0], b - middles[1]) for a, b in pairs]
        lengths = sqrt(sum(a * a for a, _ in apart) * sum(b * b for _, b in apart))
        correlation = sum(a * b for a, b in apart) / lengths if lengths else 0.0
    noises = [band_of(each, NO_LIMITS).deviation for each in (one, other)]
    weight = len(pairs) / (len(pairs) + POLICY.weight)
    return weight * correlation + (1 - weight) * min(noises) / max(noises)
