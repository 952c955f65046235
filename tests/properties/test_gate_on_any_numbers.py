"""What holds for metrics of every kind and direction, and for numbers nobody expects."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import (
    Acceptance,
    BaselineFile,
    MetricBaseline,
    Session,
    TestBaseline,
    decode_file,
    encode_text,
)
from pytest_ttnn_perf.core.codec import LARGEST, encode
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import Limits, MetricObservation, Outcome
from pytest_ttnn_perf.gate.judge import session_of
from tests.properties.strategies import FEW, METRICS, NON_FINITE, SOME, between, judged

FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**308), 10**308)
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False) | st.integers(1, 10**308)
#: What decoding lets in.
READABLE = st.floats(-LARGEST, LARGEST) | st.integers(-int(LARGEST), int(LARGEST))
TIME = Metric("m", "ns")


@SOME
@given(st.sampled_from(Kind), READABLE)
@example(Kind.COUNT, 2**53 + 1)
def test_a_value_that_must_not_change_does_not_change_by_being_stored(
    kind: Kind, value: float
) -> None:
    # As a float, a checksum beyond 2**53 would be stored as another one.
    metric = Metric("m", "", Better.EQUAL, kind)
    run = MetricObservation(metric, (value,))
    stored = MetricBaseline(metric, (session_of(run, run.samples),))
    assert judged(run, _read_again(stored)).outcome is Outcome.WITHIN


def _read_again(stored: MetricBaseline) -> MetricBaseline:
    """Return a baseline as the next run finds it."""
    test = TestBaseline(Acceptance("now"), {"m": stored})
    text = encode_text(BaselineFile(Hardware("host", "x"), {"t": test}))
    return decode_file(json.loads(text)).tests["t"].metrics["m"]


@pytest.mark.parametrize("better", Better)
@pytest.mark.parametrize("kind", Kind)
@FEW
@given(data=st.data())
def test_a_run_without_numbers_is_no_data_whatever_the_baseline(
    kind: Kind, better: Better, data: st.DataObject
) -> None:
    metric = replace(data.draw(METRICS), kind=kind, better=better)
    good = data.draw(st.lists(between(1, 10), max_size=5))
    where = data.draw(st.integers(0, len(good)))
    bad = (*good[:where], data.draw(NON_FINITE), *good[where:])
    samples = data.draw(st.sampled_from([(), bad]))
    stored = data.draw(st.none() | st.just(metric) | METRICS)
    baseline = MetricBaseline(stored, (Session(5, 0, 3),)) if stored else None
    limits = data.draw(st.sampled_from([Limits(), Limits(at_least=100, at_most=0)]))
    run = MetricObservation(metric, samples, limits=limits)
    assert judged(run, baseline).outcome is Outcome.NO_DATA
    # The same in a confirm pass: a suspect is not settled by nothing. What was within its limit is.
    if metric.compared_by_ratio:  # no other is measured again
        again = data.draw(st.lists(st.just((5.0,)) | st.just((50.0,)), max_size=2))
        suspect = 0.5 if metric.better is Better.HIGHER else 50.0
        for first in (5.0, suspect):
            confirmed = MetricObservation(metric, (first,), confirmations=(*again, samples))
            outcome = judged(confirmed, baseline).outcome
            assert outcome is Outcome.NO_DATA or (first != suspect and outcome is Outcome.WITHIN)


@pytest.mark.parametrize("kind", [Kind.TIME, Kind.THROUGHPUT])
@pytest.mark.parametrize("sample", [0, -1, -1e-300])
def test_a_ratio_without_a_positive_number_is_no_data(kind: Kind, sample: float) -> None:
    metric = replace(TIME, kind=kind)
    baseline = MetricBaseline(metric, (Session(5, 0, 3),))
    verdict = judged(MetricObservation(metric, (5.0, sample)), baseline)
    assert verdict.outcome is Outcome.NO_DATA


@SOME
@given(
    metric=METRICS,
    samples=st.lists(POSITIVE, min_size=1, max_size=4),
    sessions=st.lists(
        st.tuples(POSITIVE, FINITE.map(abs), st.integers(1, 10**400)), min_size=1, max_size=6
    ),
)
@example(TIME, [10**308, 10**308], [(1, 0, 1)])
@example(TIME, [1.0], [(1.0, 1000.0, 3)])
@example(TIME, [1.0], [(1e-200, 1.0, 3)])
@example(TIME, [1e300], [(1e-100, 0.0, 3)])
@example(TIME, [1.0], [(1.0, 0.0, 10**400)])
@example(Metric("m", "B", kind=Kind.BYTES), [1e300], [(1e-300, 0.0, 1)])
def test_any_finite_numbers_are_refused_or_give_a_verdict_of_finite_numbers(
    metric: Metric, samples: list[float], sessions: list[tuple[float, float, int]]
) -> None:
    # In the examples a sum, a square or an exponential overflowed, or a quotient was infinite,
    # which is not JSON.
    stored = MetricBaseline(metric, tuple(Session(*session) for session in sessions))
    try:
        baseline = _read_again(stored)
    except DecodeError:
        return
    verdict = judged(MetricObservation(metric, tuple(samples)), baseline)
    json.dumps(encode(verdict), allow_nan=False)
