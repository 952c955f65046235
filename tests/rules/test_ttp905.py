from __future__ import annotations

import math

from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from tests.rules.answers import Ask, Evidence, clean, limit, not_applicable, not_measured
from tests.rules.observations import Limits, MetricObservation, accuracy, measured, timed

ask = Ask("TTP905")
LIMIT = limit(10.0, "ns")
TARGET = Limits(target=10.0)
RATE = MetricObservation(
    Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT), (8.0, 9.0, 30.0), limits=TARGET
)


def test_targets_that_are_missed_the_furthest_off_first() -> None:
    subject = measured(RATE, timed(14.0, 16.0, 15.0, limits=TARGET), accuracy(0.999, target=0.99))
    assert ask(subject) == LIMIT.found(
        15.0,
        "wall_time is 15 ns, its target 10 ns; rate is 9 tok/s, its target 10 tok/s",
        [Evidence("wall_time", 15.0, "ns"), Evidence("rate", 9.0, "tok/s")],
    )


def test_an_accuracy_is_judged_by_its_worst_sample() -> None:
    answer = ask(measured(accuracy(0.9, 0.999, target=0.99)))
    assert answer.reason == "pcc is 0.9, its target 0.99"


def test_targets_that_are_reached() -> None:
    assert ask(measured(timed(8.0, limits=TARGET))) == LIMIT.clean(8.0)


def test_a_value_at_its_target_is_clean() -> None:
    assert ask(measured(timed(10.0, limits=TARGET))) == LIMIT.clean(10.0)
    rate = replace(RATE, samples=(10.0,))
    assert ask(measured(rate)) == clean(10.0, limit=10.0, unit="tok/s")


def test_a_target_of_nothing() -> None:
    answer = ask(measured(timed(1.0, limits=Limits(target=0.0))))
    assert answer.reason == "wall_time is 1 ns, its target 0 ns"


def test_without_targets() -> None:
    assert ask(measured(timed(5.0))) == not_applicable("the test sets no target")


def test_without_samples() -> None:
    why = not_measured("wall_time has a target and no finite samples")
    assert ask(measured(timed(limits=TARGET))) == why
    assert ask(measured(timed(math.nan, limits=TARGET))) == why
