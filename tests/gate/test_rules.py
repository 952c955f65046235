"""Rules on the numbers of a test: one table per family, the numbers and their reasons."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.finding import Evidence, Finding, Severity, Subject
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Requester
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.sweeps import AxisEffect
from tests.analysis.rules.answers import Ask
from tests.analysis.rules.observations import (
    Limits,
    MetricObservation,
    accuracy,
    io_measured,
    measured,
    timed,
)

NO_TRANSFERS = (
    "no profiler sees transfers: measure them with "
    "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)"
)


def told(answer: Finding) -> tuple[str, str | None, Any]:
    """Return outcome, reason and value of an answer."""
    value = answer.value if answer.value is None else pytest.approx(answer.value, abs=1e-9)
    return answer.outcome.value, answer.reason, value


def programs(before: int, after: int) -> dict[str, Any]:
    return {"program_cache_entries_before": before, "program_cache_entries_after": after}


COLD = [
    (measured(timed(5.0, 5.0, 5.0), environment=programs(12, 14)), "FOUND",
     "the program cache grew from 12 to 14 while samples were taken", 2),
    (measured(timed(5.0, 5.0, 5.0), environment=programs(12, 12)), "CLEAN", None, 3),
    (measured(timed(10.0, 5.0, 4.0, 6.0)), "FOUND",
     "the first sample of wall_time is 2.00 x the median", 2.0),
    (measured(timed(7.5, 5.0, 5.0)), "CLEAN", None, 3),
    # Two samples do not tell which of them is off.
    (measured(timed(10.0, 5.0)), "CLEAN", None, 3),
    (measured(timed(5.0, 5.0, name="throughput_time", warmup=2)), "FOUND",
     "throughput_time was sampled after 2 warm-up calls", 2),
    (measured(timed(10.0, 5.0, 5.0, warmup=0), environment=programs(1, 2)), "FOUND",
     "the program cache grew from 1 to 2 while samples were taken; the first sample of wall_time "
     "is 2.00 x the median; wall_time was sampled after 0 warm-up calls", 1),
    # A region has no warm-up to count.
    (measured(timed(5.0, 5.0, 5.0, name="decode", warmup=0)), "CLEAN", None, None),
    *((measured(observed), "NOT_APPLICABLE", "no gated time was sampled", None) for observed in (
        timed(9.0, name="call_time", warmup=0), timed(name="wall_time"), accuracy(0.5),
        timed(9.0, name=KERNEL_TIME, source=Source.DEVICE, warmup=0),
        replace(timed(10.0, 5.0, 5.0, warmup=0), gated=False),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("subject", "outcome", "reason", "value"), COLD)
def test_cold_samples(subject: Subject, outcome: str, reason: str | None, value: object) -> None:
    assert told(Ask("TTP003")(subject)) == (outcome, reason, value)


N150 = Hardware("wormhole_b0", "n150", "1x1")
T3K = Hardware("wormhole_b0", "t3k", "1x1")


@pytest.mark.parametrize(
    ("facts", "hardware", "reason", "value"),
    [
        ({"load_1m": 12.0, "cpu_count": 16}, None, "load 12 on 16 processors", 0.75),
        ({"load_1m": 12.0, "cpu_count": 16, "runnable_threads": 9}, None,
         "load 12 on 16 processors, 9 other threads about to run", 0.5625),
        ({"governor": "powersave"}, None, "the frequency governor is powersave", None),
        ({"thermal_trips": 2}, None, "a chip grew too hot: 2 thermal trips", 2),
        ({"throttled": True}, None, "a chip is throttled", None),
        ({"device_processes": 3}, None, "3 processes hold a chip", 3),
        ({"clock_mhz": 800.0}, N150, "the chip runs at 800 MHz, not at 1000", 0.8),
        # At the limits, or where the load may be that of the test itself.
        ({"load_1m": 8.0, "cpu_count": 16, "governor": "performance"}, None, None, None),
        ({"load_1m": 8.0, "cpu_count": 16, "runnable_threads": 16}, None, None, None),
        ({"thermal_trips": 0, "throttled": False, "device_processes": 1}, None, None, None),
        ({"clock_mhz": 950.0}, N150, None, None),
        # Seven chips that the test does not use may well rest.
        ({"clock_mhz": 500.0}, T3K, None, None),
        ({"clock_mhz": 500.0}, None, None, None),
    ],
)  # fmt: skip
def test_busy_host(
    facts: dict[str, Any], hardware: Hardware | None, reason: str | None, value: float | None
) -> None:
    answer = Ask("TTP006")(measured(environment=facts, hardware=hardware))
    if reason is None:
        assert answer.outcome.value == "CLEAN"
        assert answer.reason
        assert answer.reason.startswith("known from ")
    else:
        assert told(answer) == ("FOUND", reason, value)


def test_nothing_known_of_the_host() -> None:
    assert Ask("TTP006")(measured(environment={"kernel_cache": "warm"})).outcome.value == (
        "NOT_MEASURED"
    )


MOVED = AxisEffect("batch", (1, 2), 2, took_effect=True)
IDLE = AxisEffect("weights", ("bf16", "bfp8"), 2)
ALONE = AxisEffect("queues", (1,), 0)


@pytest.mark.parametrize(
    ("axes", "outcome", "reason"),
    [
        ((MOVED, IDLE), "FOUND", "axis weights changed nothing that was observed"),
        ((replace(MOVED, took_effect=False), IDLE), "FOUND",
         "axes batch and weights changed nothing that was observed"),
        ((MOVED, ALONE), "CLEAN", None),
        ((ALONE,), "NOT_MEASURED", "no two points differ in one axis alone"),
        (None, "NOT_MEASURED", "needs all points of a sweep"),
    ],
)  # fmt: skip
def test_axis_without_effect(
    axes: tuple[AxisEffect, ...] | None, outcome: str, reason: str | None
) -> None:
    answer = Ask("TTP013")(axes=axes)
    assert (answer.outcome.value, answer.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("asked", "gated", "outcome", "severity"),
    [
        (Requester.TEST, False, "FOUND", Severity.ERROR),
        (Requester.PROJECT, False, "NOT_APPLICABLE", Severity.ERROR),
        (Requester.TEST, True, "CLEAN", Severity.ERROR),
        (None, False, "NOT_APPLICABLE", Severity.ERROR),
    ],
)
def test_nothing_gated(
    asked: Requester | None, gated: bool, outcome: str, severity: Severity
) -> None:
    observed = replace(timed(5.0), gated=gated, why_ungated=None if gated else "a compile time")
    subject = measured(observed)
    assert subject.observation is not None
    subject = replace(subject, observation=replace(subject.observation, asked=asked))
    answer = rule_of("TTP017").check(subject)
    assert answer.outcome.value == outcome
    assert (answer.severity or Severity.ERROR) is severity
    if outcome == "FOUND":
        assert [each.subject for each in answer.evidence] == ["wall_time: a compile time"]


def test_a_recorded_profile_of_a_kernel_is_not_nothing() -> None:
    profile = replace(timed(5.0, name="auto_profile_cycles"), gated=False)
    observation = measured(profile).observation
    assert observation is not None
    subject = Subject(observation=replace(observation, asked=Requester.TEST))
    assert rule_of("TTP017").check(subject).outcome.value == "NOT_APPLICABLE"


def device(*samples: float, source: Source = Source.DEVICE) -> MetricObservation:
    return timed(*samples, name=KERNEL_TIME, source=source)


WALL = timed(9e6, 10e6, 60e6)
LOST = replace(device(), note="the profiler dropped markers")
BEHIND = "of the {} ms of a call, the slowest device works 2.5 ms: {} goes by without a kernel"
CALLS = [
    *((measured(WALL, device(2.5e6, source=source)), "FOUND", BEHIND.format(10, "75.0 %"), 0.75)
      for source in (Source.DEVICE, Source.REALTIME, Source.TRACY)),
    (measured(WALL, device(8e6)), "CLEAN", None, 0.2),
    # A profiler slowed the device down.
    (measured(WALL, device(12e6)), "CLEAN", None, 0.0),
    (measured(timed(5e6, name="throughput_time"), device(2.5e6)), "FOUND",
     BEHIND.format(5, "50.0 %"), 0.5),
    (measured(), "NOT_MEASURED", "the test has no wall_time", None),
    (measured(WALL), "NOT_MEASURED", "the test has no device_kernel_time", None),
    (measured(WALL, LOST), "NOT_MEASURED", "device_kernel_time: the profiler dropped markers",
     None),
    (measured(WALL, device(nan)), "NOT_MEASURED",
     "device_kernel_time of source device has no time", None),
    (measured(WALL, device(1e6, source=Source.SIM)), "NOT_MEASURED",
     "device_kernel_time of source sim has no time", None),
]  # fmt: skip


@pytest.mark.parametrize(("subject", "outcome", "reason", "value"), CALLS)
def test_device_behind_e2e(
    subject: Subject, outcome: str, reason: str | None, value: object
) -> None:
    assert told(Ask("TTP404")(subject)) == (outcome, reason, value)


ONE = {"num_command_queues": 1}


@pytest.mark.parametrize(
    ("code", "subject", "outcome", "reason", "value"),
    [
        ("TTP502", io_measured(6e6, 4e6, 10e6, facts=ONE), "FOUND",
         "6 ms compute, 4 ms transfers, both at once 10 ms: 0.0 % of the shorter one is hidden, "
         "and one command queue is open", 0.0),
        ("TTP502", io_measured(6e6, 4e6, 9e6), "FOUND",
         "6 ms compute, 4 ms transfers, both at once 9 ms: 25.0 % of the shorter one is hidden",
         0.25),
        ("TTP502", io_measured(6e6, 4e6, 8e6), "CLEAN", None, 0.5),
        ("TTP502", io_measured(6e6, 4e6, 5.9e6), "CLEAN", None, 1.0),
        ("TTP502", io_measured(10e6, 0.9e6, 12e6), "NOT_APPLICABLE",
         "there is little to overlap: 0.9 ms beside 10 ms", None),
        ("TTP502", io_measured(6e6, 0.0, 6e6), "NOT_MEASURED", NO_TRANSFERS, None),
        ("TTP503", io_measured(4e6, 6e6, 6e6), "FOUND",
         "transfers take 6 ms, compute 4 ms: 1.50 times as long", 1.5),
        ("TTP503", io_measured(4e6, 4e6, 6e6), "CLEAN", None, 1.0),
        ("TTP503", measured(), "NOT_MEASURED", NO_TRANSFERS, None),
    ],
)  # fmt: skip
def test_transfers(
    code: str, subject: Subject, outcome: str, reason: str | None, value: object
) -> None:
    assert told(Ask(code)(subject)) == (outcome, reason, value)


@pytest.mark.parametrize(
    ("code", "subject", "saved"),
    [
        ("TTP404", measured(WALL, device(2.5e6)), (7.5e6, "wall − device: 10 ms − 2.5 ms")),
        ("TTP502", io_measured(6e6, 4e6, 9e6), (3e6, "both − the longer one: 9 ms − 6 ms")),
        ("TTP503", io_measured(4e6, 6e6, 6e6), (2e6, "transfers − compute: 6 ms − 4 ms")),
    ],
)
def test_what_they_save(code: str, subject: Subject, saved: tuple[float, str]) -> None:
    assert Ask(code).saving(subject) == saved


TOP1 = accuracy(0.7, name="top1", at_least=0.75)
TARGET = Limits(target=10.0)
RATE = MetricObservation(
    Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT), (8.0, 9.0, 30.0), limits=TARGET
)
NO_PCC = "the test checks no PCC"
MISSED = "wall_time is 15 ns, its target 10 ns; rate is 9 tok/s, its target 10 tok/s"
NO_TIME = "wall_time has a target and no finite samples"
ACCURACIES = [
    ("TTP901", [accuracy(0.999, 0.98, at_least=0.99)], "FOUND", "pcc is 0.98, below 0.99", 0.98),
    ("TTP901", [
        accuracy(0.985), accuracy(0.9, name="logits_pcc", at_least=0.97),
        accuracy(1.0, name="cache_pcc"), accuracy(nan, name="pcc_states", note="no element"),
    ], "FOUND", "pcc_states does not exist: no element; logits_pcc is 0.9, below 0.97; "
     "pcc is 0.985, below 0.99", None),
    ("TTP901", [accuracy(nan, at_least=-1.0)], "FOUND",
     "pcc does not exist: it is not a number", None),
    ("TTP901", [accuracy(0.99), accuracy(0.95, name="low_pcc", at_least=0.9)], "CLEAN", None, 0.99),
    # A PCC of any name is known by the errors beside it.
    ("TTP901", [accuracy(0.5, name="logits"),
                accuracy(0.1, name="logits_max_abs_error", better=Better.LOWER)],
     "FOUND", "logits is 0.5, below 0.99", 0.5),
    ("TTP901", [TOP1, timed(5.0)], "NOT_MEASURED", NO_PCC, None),
    ("TTP902", [timed(5.0)], "FOUND",
     "the test measures its model without checking the output", None),
    ("TTP902", [timed(5.0), accuracy(0.999)], "CLEAN", None, None),
    ("TTP902", [timed(5.0), TOP1], "CLEAN", "top1 checked in its place", None),
    ("TTP902", [device(5.0)], "NOT_MEASURED",
     "only the device was measured: outputs are checked in another pass", None),
    ("TTP902", [], "NOT_APPLICABLE", "the test measures nothing", None),
    ("TTP905", [RATE, timed(14.0, 16.0, 15.0, limits=TARGET), accuracy(0.999, target=0.99)],
     "FOUND", MISSED, 15.0),
    ("TTP905", [timed(10.0, limits=TARGET)], "CLEAN", None, 10.0),
    ("TTP905", [timed(1.0, limits=Limits(target=0.0))], "FOUND",
     "wall_time is 1 ns, its target 0 ns", 1.0),
    ("TTP905", [timed(5.0)], "NOT_APPLICABLE", "the test sets no target", None),
    ("TTP905", [timed(limits=TARGET)], "NOT_MEASURED", NO_TIME, None),
    ("TTP906", [accuracy(0.999, at_least=0.98), accuracy(1.0, name="cache_pcc", at_least=0.9),
                accuracy(0.999, name="logits_pcc")],
     "FOUND", "cache_pcc needs 0.9 only; pcc needs 0.98 only", 0.9),
    ("TTP906", [accuracy(0.5, at_least=0.99)], "CLEAN", None, 0.99),
    ("TTP906", [timed(5.0)], "NOT_MEASURED", NO_PCC, None),
]  # fmt: skip


@pytest.mark.parametrize(("code", "metrics", "outcome", "reason", "value"), ACCURACIES)
def test_accuracies_and_targets(
    code: str, metrics: list[MetricObservation], outcome: str, reason: str | None, value: object
) -> None:
    assert told(Ask(code)(measured(*metrics))) == (outcome, reason, value)


def judged(*observed: MetricObservation, since: int = 0, **before: tuple[float, ...]) -> Subject:
    """Return a test with what the gate says of it; ``before`` are the sessions of its baseline."""
    subject = measured(*observed)
    assert subject.observation is not None
    metrics = {
        each.metric.name: MetricBaseline(
            each.metric, tuple(Session(pcc, 0.0, 1) for pcc in before[each.metric.name]), since
        )
        for each in observed
        if each.metric.name in before
    }
    baseline = TestBaseline(Acceptance("2026-11-15T10:00:00Z"), metrics) if metrics else None
    return replace(subject, verdicts=judge_test(subject.observation, baseline))


NOT_COMPARED = "there is no baseline of a PCC to compare with"
THREE = (accuracy(0.99, name="a_pcc"), accuracy(0.98, name="b_pcc"), accuracy(0.999, name="c_pcc"))
THEN = (0.9999,)


GREW = "pcc 0.998000, baseline 0.999900: 20 times the error (0.002000 against 0.000100)"
FEW = "pcc 0.999000, baseline 1.000000: at least 100 times the error (0.001000 against at most {})"


@pytest.mark.parametrize(
    ("subject", "outcome", "reason", "value"),
    [
        (judged(accuracy(0.9999, 0.998), pcc=(0.9999,)), "FOUND", GREW, 20.0),
        (judged(accuracy(0.998), pcc=(0.9999, 0.9999, 0.9998)), "FOUND",
         f"{GREW}, 10 times that of its worst session", 10.0),
        (judged(accuracy(0.9995), pcc=(0.9999, 0.9999, 0.9998)), "CLEAN", None, 2.5),
        (judged(accuracy(0.999), pcc=(1.0,)), "FOUND", FEW.format("0.000010"), 100.0),
        (judged(accuracy(0.9997), pcc=(0.9999,)), "FOUND",
         "pcc 0.999700, baseline 0.999900: 3 times the error (0.000300 against 0.000100)", 3.0),
        (judged(accuracy(0.999), pcc=(0.998,)), "CLEAN", None, 0.5),
        (judged(accuracy(0.99995), pcc=(1.0,)), "CLEAN", "an error below 0.0001 is rounding", 5.0),
        # Sessions from before the last accept do not count.
        (judged(accuracy(0.9995), since=1, pcc=(0.9993, 0.9999)), "FOUND",
         "pcc 0.999500, baseline 0.999900: 5 times the error (0.000500 against 0.000100)", 5.0),
        (judged(accuracy(0.999, name="a_pcc"), accuracy(0.9985, name="b_pcc"), a_pcc=THEN,
                b_pcc=THEN), "FOUND",
         "b_pcc 0.998500, baseline 0.999900: 15 times the error (0.001500 against 0.000100); "
         "1 more grew, too", 15.0),
        # What the gate fails is not told again; of two, the one that passes is.
        (judged(accuracy(0.99), pcc=(0.9999,)), "NOT_MEASURED", "the gate fails the PCC", None),
        (judged(accuracy(0.99, name="a_pcc"), accuracy(0.999, name="b_pcc"), a_pcc=THEN,
                b_pcc=THEN), "FOUND",
         "b_pcc 0.999000, baseline 0.999900: 10 times the error (0.001000 against 0.000100)",
         10.0),
        # In per cent, it is no correlation.
        (judged(accuracy(99.8), pcc=(99.9,)), "NOT_MEASURED", NOT_COMPARED, None),
        (judged(accuracy(nan), pcc=(0.99,)), "NOT_MEASURED", NOT_COMPARED, None),
        (measured(accuracy(0.99)), "NOT_MEASURED",
         "the test was not compared with its baseline", None),
    ],
)  # fmt: skip
def test_pcc_error_grew(subject: Subject, outcome: str, reason: str | None, value: object) -> None:
    assert told(Ask("TTP907")(subject)) == (outcome, reason, value)


@pytest.mark.parametrize(
    ("l2", "then", "outcome", "reason", "value"),
    [
        (1.0, (), "FOUND", "pcc_relative_l2 is 1, above 0.1", 1.0),
        (0.09, (), "CLEAN", None, 0.09),
        (0.06, (0.99,), "CLEAN", None, 0.06),
        # Ten times what the PCC of the baseline leaves.
        (0.06, (0.999999,), "FOUND", "pcc_relative_l2 is 0.06, above 0.04472", 0.06),
        (None, (), "NOT_MEASURED", "no relative L2 is known of a PCC", None),
    ],
)
def test_wrong_scale(
    l2: float | None, then: tuple[float, ...], outcome: str, reason: str | None, value: object
) -> None:
    beside = [] if l2 is None else [accuracy(l2, name="pcc_relative_l2")]
    subject = (
        judged(accuracy(0.99997), *beside, pcc=then)
        if then
        else measured(accuracy(0.99997), *beside)
    )
    assert told(Ask("TTP909")(subject)) == (outcome, reason, value)


def test_limits_of_the_project() -> None:
    grown = judged(accuracy(0.998), pcc=(0.9999,))
    for ask, subject, outcome in (
        (Ask("TTP003", {"warmup": 1}), measured(timed(5.0, warmup=1)), "CLEAN"),
        (Ask("TTP404", {"share": 0.75}), measured(WALL, device(2.5e6)), "CLEAN"),
        (Ask("TTP907", {"growth": 21}), grown, "CLEAN"),
        (Ask("TTP907", {"growth": 20}), grown, "FOUND"),
        (Ask("TTP907", {"error": 0.003}), grown, "CLEAN"),
    ):
        assert ask(subject).outcome.value == outcome


def test_evidence_has_the_number_of_each() -> None:
    answer = Ask("TTP901")(measured(accuracy(0.985), accuracy(0.9, name="logits_pcc")))
    assert answer.evidence == (Evidence("logits_pcc", 0.9, "PCC"), Evidence("pcc", 0.985, "PCC"))
    answer = Ask("TTP905")(measured(RATE))
    assert answer.evidence == (Evidence("rate", 9.0, "tok/s"),)
    answer = Ask("TTP003")(measured(timed(10.0, 5.0, 5.0, warmup=0)))
    assert [each.unit for each in answer.evidence] == ["x the median", "warm-up calls"]
