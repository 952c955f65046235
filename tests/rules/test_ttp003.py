from __future__ import annotations

import pytest

from pytest_ttnn_perf.core.metric import Source
from tests.rules.answers import Ask, Evidence, clean, found, limit, not_applicable
from tests.rules.observations import accuracy, measured, timed

ask = Ask("TTP003")
LIMIT = limit(3, "warm-up calls")
CLEAN = LIMIT.clean(3)
GROWN = {"program_cache_entries_before": 12, "program_cache_entries_after": 14}


def test_a_program_cache_that_grew() -> None:
    text = "the program cache grew from 12 to 14 while samples were taken"
    assert ask(measured(timed(5.0, 5.0, 5.0), environment=GROWN)) == found(
        text, value=2, limit=0, unit="programs", evidence=[Evidence(text, 2, "programs")]
    )


def test_a_first_sample_far_off() -> None:
    text = "the first sample of wall_time is 2.00 x the median"
    assert ask(measured(timed(10.0, 5.0, 4.0, 6.0))) == found(
        text,
        value=2.0,
        limit=1.5,
        unit="x the median",
        evidence=[Evidence(text, 2.0, "x the median")],
    )


def test_few_warm_up_calls() -> None:
    text = "throughput_time was sampled after 2 warm-up calls"
    observed = timed(5.0, 5.0, name="throughput_time", warmup=2)
    assert ask(measured(observed)) == LIMIT.found(2, text, [Evidence(text, 2, "warm-up calls")])


def test_all_at_once_the_strongest_proof_first() -> None:
    answer = ask(measured(timed(10.0, 5.0, 5.0, warmup=0), environment=GROWN))
    assert (answer.value, answer.limit, answer.unit) == (2, 0, "programs")
    assert [each.unit for each in answer.evidence] == ["programs", "x the median", "warm-up calls"]
    assert answer.reason == "; ".join(each.subject for each in answer.evidence)


def test_a_warm_model_is_clean() -> None:
    steady = {"program_cache_entries_before": 12, "program_cache_entries_after": 12}
    assert ask(measured(timed(5.0, 5.0, 5.0), environment=steady)) == CLEAN


def test_values_at_their_limits_are_clean() -> None:
    assert ask(measured(timed(7.5, 5.0, 5.0))) == CLEAN


def test_two_samples_do_not_tell_which_is_off() -> None:
    assert ask(measured(timed(10.0, 5.0))) == CLEAN


def test_a_region_has_no_warm_up_to_count() -> None:
    assert ask(measured(timed(5.0, 5.0, 5.0, name="decode", warmup=0))) == LIMIT.clean(None)


def test_limits_can_be_set() -> None:
    assert ask.with_limits(warmup=1)(measured(timed(5.0, warmup=1))) == clean(
        1, limit=1, unit="warm-up calls"
    )


@pytest.mark.parametrize(
    "observed",
    [
        timed(9.0, name="call_time", warmup=0),
        timed(9.0, name="first_call_time", warmup=0),
        timed(name="wall_time"),
        timed(9.0, name="device_kernel_time", source=Source.DEVICE, warmup=0),
        accuracy(0.5),
    ],
    ids=lambda observed: observed.metric.name,
)
def test_what_is_no_sampled_time(observed: object) -> None:
    assert ask(measured(observed)) == not_applicable("no time was sampled")  # type: ignore[arg-type]
