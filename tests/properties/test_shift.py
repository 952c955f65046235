"""Laws of the shifted machine, whatever the tests and their numbers are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Outcome, Reason, Shift, Verdict
from pytest_ttnn_perf.gate.machine_shift import _seen, explain_by_shift
from pytest_ttnn_perf.gate.ratios import suite_of
from tests.properties.strategies import MANY, SOME, baselines, between

METRICS = (
    Metric("time", "ms"),
    Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT),
    Metric("ops", "", kind=Kind.COUNT),
    Metric("kernel", "ns", source=Source.DEVICE),
)


@SOME
@given(st.lists(baselines(METRICS[0], spread=0.02), min_size=3, max_size=9), between(0.5, 3))
def test_a_machine_that_slows_all_tests_alike_is_told_by_that_factor(
    stored: list[object], slower: float
) -> None:
    suite = suite_of(stored)  # type: ignore[arg-type]
    after, shift = _seen(suite, [(slower, 0.01)] * len(stored), Source.WALL)
    assert shift is not None
    assert shift.change == pytest.approx(math.expm1(slower))
    assert shift.moved == shift.voting == len(stored)
    assert after.spread == 1.0
    assert 0 < (after.move or 0) <= slower


#: Verdicts as the gate makes them or as a record of anyone's may hold them: no comparison says
#: that less than nothing is left, or has a limit below zero.
ANY_VERDICTS = st.builds(
    Verdict,
    metric=st.sampled_from(METRICS),
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from([None, Reason.ABSOLUTE_LIMIT, Reason.SHIFTED]),
    change=st.just(0.0) | between(-0.9, 1e100) | between(-0.2, 0.2),
    limit=st.just(0.0) | between(0, 1e100) | between(0, 0.2),
    machine=st.none() | between(-0.5, 1.0),
)


@MANY
@given(st.lists(ANY_VERDICTS, max_size=8), between(0.01, 1))
def test_a_shift_explains_what_is_beyond_its_limit_and_no_more(
    verdicts: list[Verdict], change: float
) -> None:
    for before, after in zip(
        verdicts, explain_by_shift(verdicts, Shift(change, 5, 5)), strict=True
    ):
        if after != before:
            assert before.outcome in {Outcome.WITHIN, Outcome.TOO_NOISY}
            assert before.metric.source is Source.WALL
            assert (after.outcome, after.reason) == (Outcome.SHIFTED, Reason.SHIFTED)
