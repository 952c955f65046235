"""Which tests show what the machine does, and what they show of it."""

from __future__ import annotations

from math import expm1, log
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    End,
    EndKind,
    JudgedTest,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Shift,
    Verdict,
)
from pytest_ttnn_perf.gate.confirm import (
    MachineMoves,
    changes_of_control,
    choose_controls,
)
from pytest_ttnn_perf.gate.ratios import Suite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WALL = Metric("wall_time", "ns")
KERNEL = Metric("kernel_time", "ns", source=Source.DEVICE)
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
SECOND = 1e9


def judged(
    *,
    change: float = 0.0,
    limit: float = 0.03,
    took_s: float = 0.1,
    metrics: Iterable[Metric] = (WALL,),
    outcome: Outcome = Outcome.WITHIN,
    **more: Any,
) -> JudgedTest:
    """Return a test that took so long, each metric worse by ``change``, a logarithm."""
    verdicts = tuple(
        Verdict(m, outcome, centre=100.0, change=expm1(change), limit=expm1(limit)) for m in metrics
    )
    samples = (took_s * SECOND / 2,) * 2
    seen = {metric.name: MetricObservation(metric, samples) for metric in metrics}
    return JudgedTest(Observation("t.py::t", seen, **more), verdicts)


def chosen(
    tests: dict[str, JudgedTest],
    *suspects: str,
    sources: Iterable[Source] = (Source.WALL,),
    like: Mapping[str, float] | None = None,
) -> list[str]:
    likeness = (like or {}).get
    return list(choose_controls(tests, suspects, set(sources), lambda test: likeness(test, 0.5)))


def test_the_likest_come_first_and_no_more_than_eight() -> None:
    tests = {f"t{k:02}": judged(took_s=0.01) for k in range(12)}
    assert chosen(tests, like={"t11": 0.9, "t00": 0.1}) == [
        "t11",
        *(f"t{k:02}" for k in range(1, 8)),
    ]


def test_three_are_worth_any_time_and_more_take_no_longer_than_the_suspects() -> None:
    tests = {f"t{k}": judged(took_s=1.0 + k / 100) for k in range(6)}
    assert chosen(tests | {"s": judged(took_s=2.0)}, "s") == ["t0", "t1", "t2"]
    assert chosen(tests | {"s": judged(took_s=4.1)}, "s") == ["t0", "t1", "t2", "t3"]
    # One that takes too long leaves room for those after it.
    tests["t25"] = judged(took_s=9.0)
    assert chosen(tests | {"s": judged(took_s=5.5)}, "s") == ["t0", "t1", "t2", "t3", "t4"]


@pytest.mark.parametrize(
    "other",
    [
        judged(metrics=[KERNEL]),
        judged(outcome=Outcome.REGRESSED),
        judged(outcome=Outcome.IMPROVED),
        judged(problems=("measured twice",)),
        judged(ended=End(EndKind.RAISED, "ValueError")),
        judged(ended=End(EndKind.UNCONFIRMED, "gone")),
        JudgedTest(Observation("t.py::t"), (Verdict(WALL, Outcome.NO_BASELINE, Reason.NEW_TEST),)),
    ],
    ids=["source", "slower", "faster", "problem", "raised", "unconfirmed", "new"],
)
def test_what_can_be_no_control(other: JudgedTest) -> None:
    assert chosen({"suspect": judged(), "other": other, "steady": judged()}, "suspect") == [
        "steady"
    ]


def test_a_cleared_suspect_is_no_control() -> None:
    test = judged()
    again = replace(test.observation.metrics["wall_time"], confirmations=((1.0,),))
    cleared = replace(test, observation=replace(test.observation, metrics={"wall_time": again}))
    assert chosen({"cleared": cleared}) == []


def test_shifted_tests_are_asked_where_fewer_than_three_others_are() -> None:
    tests = {f"shifted{k}": judged(outcome=Outcome.SHIFTED, took_s=0.001) for k in range(4)}
    tests |= {f"steady{k}": judged() for k in range(2)}
    assert chosen(tests) == ["steady0", "steady1", *(f"shifted{k}" for k in range(4))]
    tests["steady2"] = judged()
    assert chosen(tests) == ["steady0", "steady1", "steady2"]


#: The error of controls is nothing.
SURE = dict.fromkeys(Source, Suite(0.015, 0.0, 0.0))


def test_moves_are_told_by_source() -> None:
    wall, device = Source.WALL, Source.DEVICE
    moves = MachineMoves([{wall: 0.01, device: 0.30}, {wall: 0.02}, {wall: 0.05}, {}], SURE)
    assert moves.controls == 3
    assert moves.of(wall) == pytest.approx(expm1(0.02), abs=1e-5)
    assert moves.of(device) == pytest.approx(expm1(0.30), abs=1e-5)
    assert moves.of(Source.REALTIME) is None
    shifted = MachineMoves((), SURE, otherwise=Shift(0.25, 5, 5))
    assert (shifted.of(wall), shifted.of(device)) == (0.25, None)


def again(**values: float) -> Observation:
    known = {"wall_time": WALL, "kernel_time": KERNEL, "rate": RATE}
    metrics = {name: MetricObservation(known[name], (value,)) for name, value in values.items()}
    return Observation("t.py::t", metrics)


def test_a_control_tells_by_one_time_of_each_source() -> None:
    control = judged(metrics=(WALL, RATE, KERNEL))
    changes = changes_of_control(control, again(wall_time=120, rate=95, kernel_time=103))
    assert changes == pytest.approx({Source.WALL: log(1 / 0.95), Source.DEVICE: log(1.03)})
    assert changes_of_control(control, again(kernel_time=103)).keys() == {Source.DEVICE}
