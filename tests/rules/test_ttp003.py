from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp003_cold_samples import cold_samples
from pytest_ttnn_perf.records.finding import Evidence, Subject
from pytest_ttnn_perf.records.metric import Source
from tests.rules.answers import ask
from tests.rules.observations import accuracy, measured, timed

RULE = cold_samples
CLEAN = clean(3, limit=3, unit="warm-up calls")
GROWN = {"program_cache_entries_before": 12, "program_cache_entries_after": 14}


def test_a_program_cache_that_grew() -> None:
    text = "the program cache grew from 12 to 14 while samples were taken"
    assert ask(RULE, measured(timed(5.0, 5.0, 5.0), environment=GROWN)) == found(
        text, value=2, limit=0, unit="programs", evidence=[Evidence(text, 2, "programs")]
    )


def test_a_first_sample_far_off() -> None:
    text = "the first sample of wall_time is 2.00 x the median"
    assert ask(RULE, measured(timed(10.0, 5.0, 4.0, 6.0))) == found(
        text,
        value=2.0,
        limit=1.5,
        unit="x the median",
        evidence=[Evidence(text, 2.0, "x the median")],
    )


def test_few_warm_up_calls() -> None:
    text = "throughput_time was sampled after 2 warm-up calls"
    observed = timed(5.0, 5.0, name="throughput_time", warmup=2)
    assert ask(RULE, measured(observed)) == found(
        text, value=2, limit=3, unit="warm-up calls", evidence=[Evidence(text, 2, "warm-up calls")]
    )


def test_all_at_once_the_strongest_proof_first() -> None:
    answer = ask(RULE, measured(timed(10.0, 5.0, 5.0, warmup=0), environment=GROWN))
    assert (answer.value, answer.limit, answer.unit) == (2, 0, "programs")
    assert [each.unit for each in answer.evidence] == ["programs", "x the median", "warm-up calls"]
    assert answer.reason == "; ".join(each.subject for each in answer.evidence)


def test_a_warm_model_is_clean() -> None:
    steady = {"program_cache_entries_before": 12, "program_cache_entries_after": 12}
    assert ask(RULE, measured(timed(5.0, 5.0, 5.0), environment=steady)) == CLEAN


def test_values_at_their_limits_are_clean() -> None:
    assert ask(RULE, measured(timed(7.5, 5.0, 5.0))) == CLEAN


def test_two_samples_do_not_tell_which_is_off() -> None:
    assert ask(RULE, measured(timed(10.0, 5.0))) == CLEAN


def test_a_region_has_no_warm_up_to_count() -> None:
    region = timed(5.0, 5.0, 5.0, name="decode", warmup=0)
    assert ask(RULE, measured(region)) == clean(None, limit=3, unit="warm-up calls")


def test_limits_can_be_set() -> None:
    assert ask(cold_samples.with_limits(warmup=1), measured(timed(5.0, warmup=1))) == clean(
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
    assert ask(RULE, measured(observed)) == not_applicable("no time was sampled")  # type: ignore[arg-type]


def test_without_input() -> None:
    assert ask(RULE, Subject()) == not_measured("needs a measured test")
