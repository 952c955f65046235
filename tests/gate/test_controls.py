"""Which tests show what the machine does, and what they show of it."""

from __future__ import annotations

from math import expm1, log
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

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
    choose_controls,
    moves_at_first,
    moves_of_control,
)
from pytest_ttnn_perf.gate.machine_shift import Move
from pytest_ttnn_perf.plugin.workers import _decide

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    tests: dict[str, JudgedTest], *suspects: str, sources: Iterable[Source] = (Source.WALL,)
) -> list[str]:
    return list(choose_controls(tests, suspects, set(sources)))


def test_short_and_quiet_tests_come_first_and_no_more_than_eight() -> None:
    # What a test tells for its time goes with the square of its limit.
    tests = {f"t{k}": judged(took_s=0.01 * k) for k in range(1, 12)}
    tests["noisy"] = judged(took_s=0.01, limit=0.09)  # worth as much as 0.09 s of the others
    assert chosen(tests) == [f"t{k}" for k in range(1, 9)]
    tests["quiet"] = judged(took_s=0.11, limit=0.01)
    assert chosen(tests)[:2] == ["t1", "quiet"]


def test_three_are_worth_any_time_and_more_take_no_longer_than_the_suspects() -> None:
    tests = {f"t{k}": judged(took_s=1.0 + k / 100) for k in range(6)}
    assert chosen(tests | {"s": judged(took_s=2.0)}, "s") == ["t0", "t1", "t2"]
    assert chosen(tests | {"s": judged(took_s=4.1)}, "s") == ["t0", "t1", "t2", "t3"]
    # One that takes too long leaves room for those after it.
    tests["long"] = judged(took_s=9.0, limit=0.011)
    assert chosen(tests | {"s": judged(took_s=5.5)}, "s") == ["t0", "t1", "t2", "t3", "t4"]


@pytest.mark.parametrize(
    "other",
    [
        judged(metrics=[KERNEL]),
        judged(outcome=Outcome.REGRESSED),
        judged(outcome=Outcome.IMPROVED),
        judged(outcome=Outcome.TOO_NOISY),
        judged(problems=("measured twice",)),
        judged(ended=End(EndKind.RAISED, "ValueError")),
        judged(ended=End(EndKind.UNCONFIRMED, "gone")),
        JudgedTest(Observation("t.py::t"), (Verdict(WALL, Outcome.NO_BASELINE, Reason.NEW_TEST),)),
    ],
    ids=["source", "slower", "faster", "noisy", "problem", "raised", "unconfirmed", "new"],
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


#: With such a limit the error of a control is nothing.
SURE = 1e-9


def test_moves_are_told_by_source_and_once_per_test() -> None:
    wall, device = Source.WALL, Source.DEVICE
    moves = MachineMoves(
        [
            {wall: Move(0.01, SURE), device: Move(0.30, SURE)},
            {wall: Move(0.02, SURE)},
            {wall: Move(0.05, SURE)},
            {},
        ]
    )
    assert moves.controls == 3
    assert moves.of(wall) == pytest.approx(expm1(0.02), abs=1e-5)
    assert moves.of(device) == pytest.approx(expm1(0.30), abs=1e-5)
    assert moves.overall == pytest.approx(expm1(0.02), abs=1e-5)
    assert moves.of(Source.REALTIME) is None
    moves = MachineMoves((), otherwise=0.25)
    assert (moves.of(wall), moves.overall) == (0.25, None)


def test_the_first_pass_is_told_by_tests_that_did_not_change() -> None:
    tests = [judged(change=0.02, limit=SURE), judged(change=0.9, outcome=Outcome.IMPROVED)]
    moves = moves_at_first(tests, None)
    assert moves.controls == 1
    assert moves.of(Source.WALL) == pytest.approx(expm1(0.02), abs=1e-5)


def again(**values: float) -> Observation:
    known = {"wall_time": WALL, "kernel_time": KERNEL, "rate": RATE}
    metrics = {name: MetricObservation(known[name], (value,)) for name, value in values.items()}
    return Observation("t.py::t", metrics)


def test_a_control_tells_by_its_timing_in_the_middle_of_each_source() -> None:
    control = judged(metrics=(WALL, RATE, KERNEL))
    moves = moves_of_control(control, again(wall_time=120, rate=95, kernel_time=103))
    assert moves[Source.WALL] == pytest.approx((log(1 / 0.95), 0.03))  # of two, the nearer
    assert moves[Source.DEVICE] == pytest.approx((log(1.03), 0.03))
    assert moves_of_control(control, again(kernel_time=103)).keys() == {Source.DEVICE}


def test_a_refuted_shift_excuses_no_source_that_has_no_controls() -> None:
    """The controls measure wall time; what a suspect's device time did, nothing tells then."""
    shift = Shift(0.5, 5, 8)
    told = []

    class Gate:
        doubts_shift = True
        shift: Shift | None = Shift(0.5, 5, 8)

        def moves_of(self, controls: dict[str, Observation]) -> MachineMoves:
            moves = [{Source.WALL: Move(0.0, SURE)} for _ in controls]
            return MachineMoves(moves, otherwise=self.shift.change if self.shift else None)

        def check_shift(self, move: float | None) -> Shift:
            assert move == 0
            self.shift = None
            return shift

        def first_moves(self) -> MachineMoves:
            return MachineMoves(())

        def judged(self, _: str) -> None:
            return None

        def in_question(self, _: str, *, profiled: bool) -> frozenset[str]:
            return frozenset({"kernel_time"} if not profiled else ())

        def confirm(
            self, *_: object, moves: tuple[MachineMoves, MachineMoves], **__: object
        ) -> Any:
            told.append(moves[1].of(Source.DEVICE))
            return SimpleNamespace(verdicts=())

    measured = {"control": again(wall_time=1), "suspect": again(kernel_time=1)}
    assert len(list(_decide(cast("Any", Gate()), measured, {"control"}, 1, profiled=False))) == 2
    assert told == [None]
