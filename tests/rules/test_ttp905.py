from __future__ import annotations

import math
from dataclasses import replace

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp905_target_missed import target_missed
from pytest_ttnn_perf.records.finding import Evidence, Subject
from pytest_ttnn_perf.records.metric import Better, Kind, Metric
from pytest_ttnn_perf.records.observation import Limits, MetricObservation
from tests.rules.answers import ask
from tests.rules.observations import accuracy, measured, timed

RULE = target_missed
TARGET = Limits(target=10.0)
RATE = MetricObservation(
    Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT), (8.0, 9.0, 30.0), limits=TARGET
)


def test_targets_that_are_missed_the_furthest_off_first() -> None:
    subject = measured(RATE, timed(14.0, 16.0, 15.0, limits=TARGET), accuracy(0.999, target=0.99))
    assert ask(RULE, subject) == found(
        "wall_time is 15 ns, its target 10 ns; rate is 9 tok/s, its target 10 tok/s",
        value=15.0,
        limit=10.0,
        unit="ns",
        evidence=[Evidence("wall_time", 15.0, "ns"), Evidence("rate", 9.0, "tok/s")],
    )


def test_an_accuracy_is_judged_by_its_worst_sample() -> None:
    answer = ask(RULE, measured(accuracy(0.9, 0.999, target=0.99)))
    assert answer.reason == "pcc is 0.9, its target 0.99"


def test_targets_that_are_reached() -> None:
    answer = ask(RULE, measured(timed(8.0, limits=TARGET)))
    assert answer == clean(8.0, limit=10.0, unit="ns")


def test_a_value_at_its_target_is_clean() -> None:
    assert ask(RULE, measured(timed(10.0, limits=TARGET))) == clean(10.0, limit=10.0, unit="ns")
    rate = replace(RATE, samples=(10.0,))
    assert ask(RULE, measured(rate)) == clean(10.0, limit=10.0, unit="tok/s")


def test_a_target_of_nothing() -> None:
    answer = ask(RULE, measured(timed(1.0, limits=Limits(target=0.0))))
    assert answer.reason == "wall_time is 1 ns, its target 0 ns"


def test_without_targets() -> None:
    assert ask(RULE, measured(timed(5.0))) == not_applicable("the test sets no target")


def test_without_samples() -> None:
    why = not_measured("wall_time has a target and no finite samples")
    assert ask(RULE, measured(timed(limits=TARGET))) == why
    assert ask(RULE, measured(timed(math.nan, limits=TARGET))) == why


def test_without_input() -> None:
    assert ask(RULE, Subject()) == not_measured("needs a measured test")
