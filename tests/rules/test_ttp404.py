from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp404_device_behind_e2e import device_behind_e2e
from pytest_ttnn_perf.records.finding import RuleOutcome, Subject
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Source
from tests.rules.answers import ask
from tests.rules.observations import measured, timed

UNIT = "of the wall time"


def times(*device_ns: float, source: Source = Source.DEVICE) -> Subject:
    wall = timed(9e6, 10e6, 60e6)
    return measured(wall, timed(*device_ns, name=KERNEL_TIME, source=source))


@pytest.mark.parametrize("source", [Source.DEVICE, Source.REALTIME, Source.TRACY])
def test_a_call_that_takes_longer_than_the_device_is_found(source: Source) -> None:
    assert ask(device_behind_e2e, times(2.5e6, 2.5e6, 9e6, source=source)) == Answer(
        RuleOutcome.FOUND,
        "of the 10 ms of a call, the slowest device works 2.5 ms: 75.0 % goes by without a kernel",
        0.75,
        0.2,
        UNIT,
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(device_behind_e2e.with_limits(share=0.25), times(7.5e6)) == Answer(
        RuleOutcome.CLEAN, None, 0.25, 0.25, UNIT
    )


def test_a_device_that_a_profiler_slowed_down_is_not_behind() -> None:
    assert ask(device_behind_e2e, times(12e6)) == Answer(RuleOutcome.CLEAN, None, 0.0, 0.2, UNIT)


LOST = replace(timed(name=KERNEL_TIME, source=Source.DEVICE), note="the profiler dropped markers")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject(), "needs a measured test"),
        (measured(), "the test has no wall_time"),
        (measured(timed(10e6)), "the test has no device_kernel_time"),
        (measured(timed(10e6), LOST), "device_kernel_time: the profiler dropped markers"),
        (times(float("nan")), "device_kernel_time of source device has no time"),
        (times(1e6, source=Source.SIM), "device_kernel_time of source sim has no time"),
    ],
)
def test_without_both_times_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(device_behind_e2e, subject) == Answer(RuleOutcome.NOT_MEASURED, reason)
