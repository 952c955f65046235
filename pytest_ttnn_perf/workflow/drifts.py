"""What drifted: within the samples of a test, or from test to test in the course of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.gate.drift import drift_of
from pytest_ttnn_perf.model.drift import Drifting
from pytest_ttnn_perf.model.metric import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.model.observation import JudgedTest


def drifts_of(tests: Iterable[JudgedTest]) -> Iterator[Drifting]:
    """Yield the times that drifted within their samples, then the run if it did.

    Times only: a throughput that was derived from one would say the same again.
    """
    ratios: list[float] = []
    for judged in tests:
        changes = []
        for verdict in judged.verdicts:
            observed = judged.observation.metrics.get(verdict.metric.name)
            if observed is None or verdict.metric.kind is not Kind.TIME:
                continue
            drift = drift_of(observed.samples)
            if drift is not None:
                samples = len(observed.samples)
                yield Drifting(judged.observation.test, verdict.metric.name, samples, drift)
            changes += [] if verdict.change is None else [verdict.change]
        ratios += [1 + max(changes, key=abs)] if changes else []
    drift = drift_of(ratios)
    if drift is not None:
        yield Drifting(None, None, len(ratios), drift)
