from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import KERNEL_TIME, Source
from tests.rules.answers import Ask, Subject, clean, limit, not_measured
from tests.rules.observations import measured, timed

ask = Ask("TTP404")
LIMIT = limit(0.2, "of the wall time")


def times(*device_ns: float, source: Source = Source.DEVICE) -> Subject:
    wall = timed(9e6, 10e6, 60e6)
    return measured(wall, timed(*device_ns, name=KERNEL_TIME, source=source))


@pytest.mark.parametrize("source", [Source.DEVICE, Source.REALTIME, Source.TRACY])
def test_a_call_that_takes_longer_than_the_device_is_found(source: Source) -> None:
    assert ask(times(2.5e6, 2.5e6, 9e6, source=source)) == LIMIT.found(
        0.75,
        "of the 10 ms of a call, the slowest device works 2.5 ms: 75.0 % goes by without a kernel",
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask.with_limits(share=0.25)(times(7.5e6)) == clean(0.25, limit=0.25, unit=LIMIT.unit)


def test_a_device_that_a_profiler_slowed_down_is_not_behind() -> None:
    assert ask(times(12e6)) == LIMIT.clean(0.0)


LOST = replace(timed(name=KERNEL_TIME, source=Source.DEVICE), note="the profiler dropped markers")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (measured(), "the test has no wall_time"),
        (measured(timed(10e6)), "the test has no device_kernel_time"),
        (measured(timed(10e6), LOST), "device_kernel_time: the profiler dropped markers"),
        (times(float("nan")), "device_kernel_time of source device has no time"),
        (times(1e6, source=Source.SIM), "device_kernel_time of source sim has no time"),
    ],
)
def test_without_both_times_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)


def test_it_saves_what_is_not_the_device() -> None:
    assert ask.saving(times(2.5e6)) == (7.5e6, "wall − device: 10 ms − 2.5 ms")


def test_overlapping_calls_have_a_throughput_and_a_call_of_its_own_wins() -> None:
    device = timed(2.5e6, name=KERNEL_TIME, source=Source.DEVICE)
    throughput = timed(5e6, name="throughput_time")
    sentence = (
        "of the {} ms of a call, the slowest device works 2.5 ms: {} goes by without a kernel"
    )
    assert ask(measured(throughput, device)) == LIMIT.found(0.5, sentence.format(5, "50.0 %"))
    both = measured(throughput, timed(10e6), device)
    assert ask(both) == LIMIT.found(0.75, sentence.format(10, "75.0 %"))
