"""Laws of trends, whatever was measured."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.history.runs import Point, Reading, RecordedRun, RecordFile, Series
from pytest_ttnn_perf.history.trends import (
    Kind,
    SeriesChange,
    changes_of_series,
    find_steps,
    winsorised,
)
from tests.properties.strategies import FEW, SOME

SOURCE = RecordFile(Path("-"))
KEY = "wormhole_b0-n150-1x1"


@SOME
@given(st.lists(st.floats(-30, 30), max_size=60))
def test_any_numbers_are_looked_at(values: list[float]) -> None:
    steps = find_steps(winsorised(values))
    assert all(0 < step.position < len(values) for step in steps)
    assert [step.position for step in steps] == sorted({step.position for step in steps})


def fleet(seed: int, factor: float, slow: str, since: int) -> tuple[Series, list[RecordedRun]]:
    """Return what four hosts measured of a test, one of them slower from a run on."""
    rng = Random(seed)
    hosts = [f"host-{number % 4}" for number in range(160)]
    runs = [
        RecordedRun(
            SOURCE, None, Environment(commit=f"{number:040x}", runner=host), None, True, {}, ()
        )
        for number, host in enumerate(hosts)
    ]
    metric, points = Metric("latency", "ms"), []
    for number, run in enumerate(runs):
        value = math.exp(rng.gauss(0, 0.003) + factor * (run.host == slow and number >= since))
        reading = Reading(
            "t", metric, KEY, (), value, None, gated=True, explains=False, written=False
        )
        points.append(Point(number, run, reading))
    return Series("t", metric, KEY, (), tuple(points)), runs


def found_in(series: Series, runs: list[RecordedRun]) -> list[SeriesChange]:
    return list(changes_of_series(series, runs, lambda _: None))


@FEW
@given(
    st.integers(0, 999),
    st.sampled_from([1.04, 1.1, 1.3, 0.95, 0.8]),
    st.integers(0, 3),
    st.integers(40, 120),
)
def test_a_host_that_changed_is_named(seed: int, factor: float, number: int, since: int) -> None:
    slow = f"host-{number}"
    (change,) = found_in(*fleet(seed, math.log(factor), slow, since))
    assert (change.kind, change.hosts) == (Kind.HOST, (slow,))
    assert abs(change.size - math.log(factor)) < 0.01
    assert change.before < since + 4
    assert change.after >= since - 4


@FEW
@given(st.integers(0, 999))
def test_hosts_that_always_differ_are_no_change(seed: int) -> None:
    assert found_in(*fleet(seed, math.log(1.2), "host-1", 0)) == []
