from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from tests.rules.answers import Ask, Evidence, clean, found, limit, not_measured
from tests.rules.observations import measured

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

ask = Ask("TTP006")
LIMIT = limit(0.95, "of the chip's clock")
N150 = Hardware("wormhole_b0", "n150", "1x1")


@pytest.mark.parametrize(
    ("facts", "text", "value", "limit", "unit"),
    [
        (
            {"load_1m": 12.0, "cpu_count": 16},
            "load 12 on 16 processors", 0.75, 0.5, "of the processors",
        ),
        (
            {"load_1m": 12.0, "cpu_count": 16, "runnable_threads": 9},
            "load 12 on 16 processors, 9 other threads about to run",
            0.5625, 0.5, "of the processors",
        ),
        ({"governor": "powersave"}, "the frequency governor is powersave", None, None, ""),
        ({"thermal_trips": 2}, "a chip grew too hot: 2 thermal trips", 2, 0, "trips"),
        ({"throttled": True}, "a chip is throttled", None, None, ""),
        ({"device_processes": 3}, "3 processes hold a chip", 3, 1, "processes"),
    ],
)  # fmt: skip
def test_a_busy_machine(
    facts: dict[str, Scalar], text: str, value: float | None, limit: float | None, unit: str
) -> None:
    assert ask(facts=facts) == found(
        text, value=value, limit=limit, unit=unit, evidence=[Evidence(text, value, unit)]
    )


def test_a_slow_clock_of_the_only_chip() -> None:
    text = "the chip runs at 800 MHz, not at 1000"
    assert ask(measured(environment={"clock_mhz": 800.0}, hardware=N150)) == LIMIT.found(
        0.8, text, [Evidence(text, 0.8, "of the chip's clock")]
    )


def test_all_at_once() -> None:
    facts: dict[str, Scalar] = {"load_1m": 12.0, "cpu_count": 16, "governor": "powersave"}
    answer = ask(facts=facts)
    assert answer.reason == "load 12 on 16 processors; the frequency governor is powersave"
    assert len(answer.evidence) == 2


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"load_1m": 8.0, "cpu_count": 16, "governor": "performance"}, "load_1m, governor"),
        ({"load_1m": 8.0}, "load_1m"),
        # The test itself was busy before its samples; or others were, for a moment.
        ({"load_1m": 16.0, "cpu_count": 16, "runnable_threads": 8}, "load_1m"),
        ({"load_1m": 8.0, "cpu_count": 16, "runnable_threads": 16}, "load_1m"),
        ({"thermal_trips": 0, "throttled": False, "device_processes": 1},
         "thermal_trips, throttled, device_processes"),
    ],
)  # fmt: skip
def test_values_at_their_limits_are_clean(facts: dict[str, Scalar], told: str) -> None:
    assert ask(facts=facts) == clean(reason=f"known from {told}")


@pytest.mark.parametrize(
    ("hardware", "clock"),
    [
        (N150, 950.0),
        (Hardware("blackhole", "p150", "1x1"), 1350.0),
        # Seven chips that the test does not use may well rest.
        (Hardware("wormhole_b0", "t3k", "1x1"), 500.0),
        (Hardware("quasar", "n150", "1x1"), 500.0),
        (None, 500.0),
    ],
)
def test_clocks_that_are_no_trouble(hardware: Hardware | None, clock: float) -> None:
    subject = measured(environment={"clock_mhz": clock}, hardware=hardware)
    assert ask(subject) == clean(reason="known from clock_mhz")


def test_without_input() -> None:
    why = "nothing is known of the load, the governor or the chips"
    assert ask() == not_measured(why)
    assert ask(measured(environment={"kernel_cache": "warm"})) == not_measured(why)
