"""Which metrics are measured again, how often, and what that does to an observation."""

from __future__ import annotations

from math import exp, log, nan
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    End,
    EndKind,
    JudgedTest,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
)
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.gate.confirm import MachineMoves, add_confirmation, in_question
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.ratios import Suite, band_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_ttnn_perf.core.observation import Verdict

UPDATES = (None, Update.NEW, Update.IMPROVED, Update.ALL)


def metric(name: str) -> Metric:
    """Return the metric that is stored under a name here."""
    match name.partition("_")[0]:
        case "rate":
            return Metric(name, "tok/s", Better.HIGHER, Kind.THROUGHPUT)
        case "count":
            return Metric(name, "", kind=Kind.COUNT)
        case "accuracy":
            return Metric(name, "", Better.HIGHER, Kind.ACCURACY)
        case "checksum":
            return Metric(name, "", Better.EQUAL)
    return Metric(name, "ms")


def observed(**values: float) -> Observation:
    """Return an observation with one sample of each metric."""
    metrics = {name: MetricObservation(metric(name), (value,)) for name, value in values.items()}
    return Observation("t.py::t", metrics)


def stored(*names: str) -> TestBaseline:
    """Return a baseline of 100 for each metric."""
    runs = tuple(Session(100, 0, 1, run) for run in "abc")
    metrics = {name: MetricBaseline(metric(name), runs) for name in names}
    return TestBaseline(Acceptance("now"), metrics)


def judged(observation: Observation) -> JudgedTest:
    """Judge against a baseline of 100 for every metric that is not called new."""
    names = [name for name in observation.metrics if "new" not in name]
    return JudgedTest(observation, judge_test(observation, stored(*names) if names else None))


def questions(observation: Observation, *, passes: int = 2) -> list[set[str]]:
    """Return what is in question without an update, and under each."""
    return [set(in_question(judged(observation), update, passes=passes)) for update in UPDATES]


def passes_of(observation: Observation, name: str) -> list[list[float]]:
    """Return what the confirm passes measured of a metric."""
    return [list(samples) for samples in observation.metrics[name].confirmations]


def verdict_on(observation: Observation, name: str) -> Verdict:
    return {verdict.metric.name: verdict for verdict in judged(observation).verdicts}[name]


#: No control tells.
UNKNOWN = MachineMoves((), {})
#: A machine that moved by a tenth in the first pass, and tests that tell of it without error.
MOVED = Suite(0.015, 0.0, 0.0, move=log(1.1))


def confirmed(
    before: Observation,
    names: Collection[str],
    again: Observation,
    *,
    number: int = 1,
    first: Mapping[Source, Suite] | None = None,
    moves: MachineMoves = UNKNOWN,
) -> Observation:
    return add_confirmation(before, names, again, number=number, first=first or {}, moves=moves)


MIXED = observed(slow=120, rate_slow=80, fast=50, rate_fast=200, same=100, new=5)


def test_suspects_are_measured_again_and_what_would_become_a_baseline() -> None:
    slow, fast = {"slow", "rate_slow"}, {"fast", "rate_fast"}
    assert questions(MIXED) == [slow, slow | {"new"}, slow | fast | {"new"}, slow | fast | {"new"}]
    of_device = MetricObservation(replace(metric("t"), source=Source.DEVICE), (100.0,))
    run = replace(observed(t=100), metrics={"t": of_device})
    assert questions(run) == [set(), set(), set(), {"t"}]  # it would replace the baseline


@pytest.mark.parametrize("name", ["count", "accuracy", "checksum"])
def test_what_is_compared_exactly_has_no_luck(name: str) -> None:
    assert questions(observed(**{name: 99.0})) == [set()] * 4
    assert questions(observed(**{name: 101.0, f"{name}_new": 99.0})) == [set()] * 4


def test_a_gain_beside_a_suspect_is_measured_along_with_it() -> None:
    """Or the gain would be left with a pass too few once the suspect is cleared."""
    run = observed(slow=120, fast=50)
    for number in (1, 2):
        names = in_question(judged(run), Update.IMPROVED, passes=2)
        run = confirmed(run, names, observed(slow=100, fast=50), number=number)
    assert [len(each.confirmations) for each in run.metrics.values()] == [1, 2]
    assert not in_question(judged(run), Update.IMPROVED, passes=2)
    assert verdict_on(run, "fast").outcome is Outcome.IMPROVED


@pytest.mark.parametrize(
    "change",
    [
        {"ended": End(EndKind.RAISED, "ValueError")},
        {"problems": ("twice",)},
        {"ended": End(EndKind.UNCONFIRMED, "gone")},
    ],
    ids=["raised", "problem", "unconfirmed"],
)
def test_a_test_that_went_wrong_is_not_measured_again(change: dict[str, Any]) -> None:
    assert questions(replace(MIXED, **change)) == [set()] * 4


def measured_as(**definition: Any) -> Observation:
    """Return what would clear the suspect, if it were the same metric."""
    same = MetricObservation(replace(metric("slow"), **definition), (100.0,))
    return replace(observed(slow=100), metrics={"slow": same})


@pytest.mark.parametrize(
    ("again", "why"),
    [
        (
            replace(observed(slow=100), ended=End(EndKind.RAISED, "RuntimeError: no device")),
            "the test raised RuntimeError: no device",
        ),
        (replace(observed(slow=100), problems=("t: measured twice",)), "t: measured twice"),
        (
            replace(observed(slow=100), configuration={"batch": 8}),
            "another configuration: batch is 8, before None",
        ),
        (
            replace(observed(slow=100), hardware=Hardware("blackhole", "p150", "1x1")),
            "other hardware: blackhole-p150-1x1, before no device",
        ),
        (measured_as(unit="s"), "slow is defined differently: unit is 's', before 'ms'"),
        (
            measured_as(source=Source.DEVICE),
            "slow comes from another source: device, before wall",
        ),
        (observed(other=100), "the test did not record it"),
    ],
    ids=["raised", "problem", "configuration", "hardware", "unit", "source", "not recorded"],
)
def test_a_pass_that_goes_wrong_confirms_nothing(again: Observation, why: str) -> None:
    run = confirmed(observed(slow=120, same=100), ["slow"], again, number=2)
    assert run.ended == End(EndKind.UNCONFIRMED, f"confirm pass 2: {why}")
    assert passes_of(run, "slow") == [[]]  # nothing of it can be stored
    verdict = verdict_on(run, "slow")
    assert (verdict.outcome, verdict.reason) == (Outcome.NO_DATA, Reason.NOT_CONFIRMED)
    assert verdict.detail == run.ended.text
    assert verdict_on(run, "same").outcome is Outcome.WITHIN


#: The limit of three equal runs, where nothing is new in a process.
LIMIT = band_of(stored("t").metrics["t"], NO_LIMITS).limit


def at(limits: float) -> float:
    """Return the time that is worse than its baseline by so many limits."""
    return 100 * exp(limits * LIMIT)


@pytest.mark.parametrize(
    ("measured", "asked"),
    [
        ((0.69,), False),
        ((0.71,), True),
        ((0.9, 0.51), True),
        ((3.0, 0.49), False),
        ((3.0, 2.0), True),
        ((3.0, 2.0, 2.0), False),  # there are no more passes
    ],
)
def test_a_first_measurement_near_the_limit_is_in_question_until_one_is_far_from_it(
    measured: tuple[float, ...], asked: bool
) -> None:
    run = observed(t=at(measured[0]))
    for limits in measured[1:]:
        run = confirmed(run, ["t"], observed(t=at(limits)))
    assert questions(run)[0] == ({"t"} if asked else set())


@pytest.mark.parametrize(
    ("passed", "outcome"),
    [
        ((0.9,), Outcome.WITHIN),
        ((1.1,), Outcome.NO_DATA),
        ((0.9, 0.6), Outcome.WITHIN),
        ((0.9, 2.0), Outcome.NO_DATA),  # together beyond the limit, which nothing refutes
        ((2.0, 0.6), Outcome.NO_DATA),
    ],
)
@pytest.mark.parametrize("failed", [(), (nan,), (0.0,)], ids=str)
def test_a_pass_that_fails_leaves_only_what_was_plainly_within_its_limit(
    failed: tuple[float, ...], passed: tuple[float, ...], outcome: Outcome
) -> None:
    run = observed(t=at(passed[0]))
    for limits in passed[1:]:
        run = confirmed(run, ["t"], observed(t=at(limits)))
    last = replace(run, metrics={"t": MetricObservation(metric("t"), failed)})
    run = confirmed(run, ["t"], last)
    assert verdict_on(run, "t").outcome is outcome
    assert questions(run) == [set()] * 4


def test_each_pass_is_told_with_what_the_machine_did() -> None:
    first = {Source.WALL: MOVED}
    again, later = (MachineMoves([{Source.WALL: log(move)}], first) for move in (1.2, 1.1))
    kernel = MetricObservation(replace(metric("kernel"), source=Source.DEVICE), (130.0,))
    run = observed(slow=130)
    run = replace(run, metrics={**run.metrics, "kernel": kernel})
    run = confirmed(run, ["slow", "kernel"], run, first=first, moves=again)
    run = confirmed(run, ["slow"], run, number=2, first=first, moves=later)
    assert run.metrics["slow"].machine == pytest.approx((0.1, 0.2, 0.1))
    assert run.metrics["kernel"].machine == (None, None)
