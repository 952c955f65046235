"""What the points of a sweep amount to, number by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import (
    JudgedTest,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    SweepPoint,
    Verdict,
)
from pytest_ttnn_perf.gate.sweeps import Role, sweeps_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.gate.sweeps import Sweep

RATE = Metric("samples_per_second", "samples/s", Better.HIGHER, Kind.THROUGHPUT)
TIME = Metric("wall_time", "ns")
PCC = Metric("pcc", "", Better.HIGHER, Kind.ACCURACY)


def point(
    axes: dict[str, Scalar],
    metrics: dict[Metric, float],
    *,
    require: dict[str, Scalar] | None = None,
    facts: dict[str, Scalar] | None = None,
    configuration: dict[str, Scalar] | None = None,
    failing: tuple[Verdict, ...] = (),
) -> JudgedTest:
    observed = {
        metric.name: MetricObservation(metric, (value, value * 1.0005, value * 0.9995))
        if metric.compared_by_ratio
        else MetricObservation(metric, (value,))
        for metric, value in metrics.items()
    }
    name = f"t[{'-'.join(map(str, axes.values()))}]"
    observation = Observation(
        name,
        observed,
        configuration=configuration or {},
        facts=facts or {},
        sweep=SweepPoint("t", axes, require or {}),
    )
    return JudgedTest(observation, failing)


def rates(*values: float) -> Sweep:
    tests = [point({"batch": 2**n}, {RATE: value}) for n, value in enumerate(values)]
    (sweep,) = sweeps_of(tests)
    return sweep


def test_what_cannot_be_told_apart_is_all_best_if_it_is_accurate() -> None:
    assert rates(100, 400, 404).best == ("t[4]", "t[2]")
    assert rates(100, 300, 404).best == ("t[4]",)
    broken = Verdict(PCC, Outcome.REGRESSED, reason=Reason.ABSOLUTE_LIMIT)
    tests = [
        point({"batch": 1}, {RATE: 100.0, PCC: 0.999}),
        point({"batch": 2}, {RATE: 200.0, PCC: 0.5}, failing=(broken,)),
    ]
    (sweep,) = sweeps_of(tests)
    assert (sweep.best, sweep.points[1].unmet) == (("t[1]",), ("pcc is REGRESSED",))


@pytest.mark.parametrize(
    ("metric", "role"),
    [
        (TIME, Role.LATENCY),
        (Metric("tok", "tok/s", Better.HIGHER, Kind.THROUGHPUT), Role.THROUGHPUT),
    ],
)
def test_the_best_by_another_rate_or_else_by_time(metric: Metric, role: Role) -> None:
    values = (50.0, 90.0) if role is Role.LATENCY else (90.0, 50.0)
    tests = [point({"n": n}, {metric: value}) for n, value in enumerate(values)]
    (sweep,) = sweeps_of(tests)
    assert (sweep.best, sweep.best_by) == (("t[0]",), role)


@pytest.mark.parametrize(
    ("require", "best", "unmet"),
    [
        ({}, "t[2]", ()),
        ({"pcc": 0.99}, "t[1]", ("pcc below 0.99",)),
        ({"wall_time": "60 ns"}, "t[1]", ("wall_time above 60 ns",)),
        ({"pcc": 0.99999}, None, ("pcc below 0.99999",)),
        ({"l1_bytes": 1}, None, ("l1_bytes was not measured",)),
        ({"wall_time": "60 samples"}, None, ("wall_time cannot be compared with 60 samples",)),
    ],
)
def test_what_is_required_has_the_direction_of_its_metric(
    require: dict[str, Scalar], best: str | None, unmet: tuple[str, ...]
) -> None:
    tests = [
        point({"batch": 1}, {RATE: 100.0, TIME: 50.0, PCC: 0.999}, require=require),
        point({"batch": 2}, {RATE: 200.0, TIME: 90.0, PCC: 0.98}, require=require),
    ]
    (sweep,) = sweeps_of(tests)
    assert sweep.best == ((best,) if best else ())
    assert sweep.points[1].unmet == unmet


@pytest.mark.parametrize(
    ("change", "took_effect"),
    [
        ({}, False),
        ({"facts": {"weights": "b"}}, False),  # it repeats the axis
        ({"facts": {"weight_bytes": 7}}, True),
        ({"configuration": {"l1_small_size": 7}}, True),
    ],
)
def test_what_proves_that_an_axis_took_effect(
    change: dict[str, dict[str, Scalar]], took_effect: bool
) -> None:
    before: dict[str, dict[str, Scalar]] = {
        kind: {name: "a" if name == "weights" else 1 for name in values}
        for kind, values in change.items()
    }
    # A rate may have been reckoned from the axis: it proves nothing.
    tests = [
        point({"weights": "a"}, {RATE: 100.0, TIME: 50.0}, **before),  # type: ignore[arg-type]
        point({"weights": "b"}, {RATE: 200.0, TIME: 50.2}, **change),  # type: ignore[arg-type]
    ]
    (sweep,) = sweeps_of(tests)
    (axis,) = sweep.axes
    assert (axis.compared, axis.took_effect) == (1, took_effect)


def test_points_that_differ_in_two_axes_prove_nothing() -> None:
    tests = [
        point({"batch": 1, "weights": "a"}, {TIME: 50.0}),
        point({"batch": 2, "weights": "b"}, {TIME: 90.0}),
    ]
    (sweep,) = sweeps_of(tests)
    assert [axis.compared for axis in sweep.axes] == [0, 0]


def known(value: float, *, limit: float, provisional: bool = False) -> Verdict:
    """Return what the gate says of a throughput whose baseline shows how much runs differ."""
    return Verdict(
        RATE, Outcome.WITHIN, observed=value, centre=value, limit=limit, provisional=provisional
    )


@pytest.mark.parametrize(
    ("limit", "provisional", "best"),
    [
        (0.05, False, ("t[2]",)),  # a quiet baseline: what is assumed stays
        (0.20, False, ("t[2]", "t[1]")),
        (0.20, True, ("t[2]",)),  # too few runs to show anything
    ],
)
def test_a_baseline_that_shows_more_noise_widens_what_is_noise(
    limit: float, provisional: bool, best: tuple[str, ...]
) -> None:
    tests = [
        point(
            {"batch": batch},
            {RATE: rate},
            failing=(known(rate, limit=limit, provisional=provisional),),
        )
        for batch, rate in ((1, 100.0), (2, 112.0))
    ]
    (sweep,) = sweeps_of(tests)
    assert sweep.best == best


def test_a_point_that_was_measured_again_counts_with_all_that_was_measured() -> None:
    again = replace(known(100.0, limit=0.07), confirmed=(99.0, 101.0))
    (sweep,) = sweeps_of([point({"batch": 1}, {RATE: 150.0}, failing=(again,))])
    assert sweep.points[0].value(Role.THROUGHPUT) == 100.0


def test_points_are_in_the_order_of_their_numbers_whichever_came_first() -> None:
    came = [(4, "b"), (1, "b"), (4, "a"), (1, "a")]
    tests = [point({"batch": batch, "weights": weights}, {RATE: 1.0}) for batch, weights in came]
    (sweep,) = sweeps_of(tests)
    listed = [tuple(each.axes.values()) for each in sweep.points]
    assert listed == [(1, "b"), (1, "a"), (4, "b"), (4, "a")]
