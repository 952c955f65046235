"""A record is judged anew as it was in its run, and with what the baselines of its key teach."""

from __future__ import annotations

from math import exp, expm1, sqrt
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    JudgedTest,
    MetricObservation,
    Observation,
    Outcome,
    Run,
    decode_run,
    encode_run,
)
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.gate.judging import Policies, judge_run
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.harness.baselines import N150, T3K, stored, times

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

LATENCY = Metric("latency", "ms", kind=Kind.TIME)
KERNEL = Metric("kernel_time", "ms", source=Source.DEVICE)
#: The limit of three equal runs whose samples differ: 3.4 · 0.015, a logarithm.
LIMIT = 3.4 * 0.015


def seen(test: str, *limits: float, machine: tuple[float, ...] = ()) -> JudgedTest:
    """Return a test that was worse by so many limits, at first and in each confirm pass."""
    first, *again = ((10 * exp(each * LIMIT),) * 10 for each in limits)
    moves = tuple(expm1(move * LIMIT) for move in machine)
    observed = MetricObservation(LATENCY, first, tuple(again), moves)
    return JudgedTest(Observation(test, {"latency": observed}), ())


def outcomes(desk: Desk, *tests: JudgedTest, refuted: bool = False) -> dict[str, str]:
    """Return the outcomes of a record, judged against three equal runs of 10 ms each."""
    for judged in tests:
        desk.store(judged.observation.test, stored(times(10, 10, 10)))
    run = Run(N150, {each.observation.test: each for each in tests}, shift_refuted=refuted)
    read = decode_run(encode_run(run))
    judged_run = judge_run(read, BaselineStore(desk.root), Settings())
    return {name[6:]: each.verdicts[0].outcome.value for name, each in judged_run.tests.items()}


def test_verdicts_follow_from_all_measurements_of_a_record(desk: Desk) -> None:
    observed = MetricObservation(LATENCY, (11.0,) * 10, ((),))
    lost = Observation("t.py::unconfirmed", {"latency": observed}, unconfirmed="pass 1: gone")
    found = outcomes(
        desk,
        seen("t.py::confirmed", 1.5, 1.2, 1.2, machine=(0, 0, 0)),
        seen("t.py::cleared", 1.5, 0.4, machine=(0, 0)),
        seen("t.py::excused", 1.5, 1.5, machine=(0.8, 0.8)),
        JudgedTest(lost, ()),
        *(seen(f"t.py::steady{k}", 0.1) for k in range(3)),
    )
    told = {name: outcome for name, outcome in found.items() if not name.startswith("steady")}
    assert told == {
        "confirmed": "REGRESSED",
        "cleared": "WITHIN",
        "excused": "WITHIN",
        "unconfirmed": "NO_DATA",
    }


@pytest.mark.parametrize("refuted", [False, True])
def test_a_shift_that_was_refuted_stays_so(desk: Desk, refuted: bool) -> None:
    """By how they moved at first, the machine did: what the controls showed is in the record."""
    moved = [seen(f"t.py::t{k}", 2.0, 2.0, machine=(0, 0)) for k in range(5)]
    found = outcomes(desk, *moved, *(seen(f"t.py::s{k}", 0.0) for k in range(3)), refuted=refuted)
    # Judged beside controls that stood still, they are slower either way.
    assert {found[f"t{k}"] for k in range(5)} == {"REGRESSED"}
    once = [seen(f"t.py::t{k}", 2.0) for k in range(5)]
    found = outcomes(desk, *once, *(seen(f"t.py::s{k}", 0.0) for k in range(3)), refuted=refuted)
    assert {found[f"t{k}"] for k in range(5)} == {"REGRESSED" if refuted else "SHIFTED"}


def test_a_machine_that_is_a_little_slower_is_no_shift_while_no_test_is_beyond_its_limit(
    desk: Desk,
) -> None:
    assert set(outcomes(desk, *(seen(f"t.py::t{k}", 0.9) for k in range(8))).values()) == {"WITHIN"}
    found = outcomes(desk, *(seen(f"t.py::t{k}", 0.9 + 0.2 * (k == 0)) for k in range(8)))
    assert found["t0"] == "SHIFTED"


def test_the_baselines_of_a_key_teach_how_quiet_its_device_is(desk: Desk) -> None:
    apart = 0.02
    sessions = (Session(10, 0, 5, "a"), Session(10 * exp(apart), 0, 5, "b"))
    for k in range(8):
        desk.store(f"t{k}.py::t", stored(MetricBaseline(KERNEL, sessions)))
    broken = next(desk.root.rglob("t0.json")).with_name("broken.json")
    broken.write_text("{")  # the trouble of another test
    policies = Policies(BaselineStore(desk.root))
    device, wall = (MetricObservation(metric, (10.0,)) for metric in (KERNEL, LATENCY))
    assert policies.of(N150, [device, wall]).prior_device == pytest.approx(apart / sqrt(2))
    assert policies.of(N150, [wall]).prior_device == 0.005
    assert policies.of(T3K, [device]).prior_device == 0.005


def test_what_a_device_teaches_decides(desk: Desk) -> None:
    """8 % are beyond 3.4 · 0.005 · √1.5 = 2.1 %, within 3.4 · √(7/8 · 0.04² / 2) · √1.5 = 11 %."""
    for k in range(8):
        values = (10, 10 * exp(0.04)) if k else (10, 10)
        sessions = tuple(Session(v, v * 1e-5, 5, run) for v, run in zip(values, "ab", strict=True))
        desk.store(f"t{k}.py::t", stored(MetricBaseline(KERNEL, sessions)))
    observed = MetricObservation(KERNEL, (10.8,) * 5)
    test = JudgedTest(Observation("t0.py::t", {"kernel_time": observed}), ())
    run = Run(N150, {"t0.py::t": test})
    for count, outcome in ((8, Outcome.WITHIN), (7, Outcome.REGRESSED)):
        if count == 7:
            next(desk.root.rglob("t7.json")).unlink()
        judged = judge_run(run, BaselineStore(desk.root), Settings())
        assert judged.tests["t0.py::t"].verdicts[0].outcome is outcome
