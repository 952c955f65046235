"""Drift of samples: what is plain is said, chance is not."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.gate.machine_shift import drift_of
from tests.behaviour.model import MODEL, metric, write_model

if TYPE_CHECKING:
    from tests.harness.project import Project


def ramped(count: int, change: float) -> list[float]:
    return [1e6 * (1 + change) ** (k / (count - 1)) for k in range(count)]


@pytest.mark.parametrize(
    ("samples", "change"),
    [
        (ramped(8, 0.10), 0.0851),
        (ramped(30, -0.10), -0.0704),
        (ramped(1000, 0.10), 0.0659),
        ([1e6] * 10 + [1.1e6] * 20, 0.10),
        (ramped(7, 9.0), None),
        (ramped(30, 0.02), None),
        (ramped(4, 0.1) * 5, None),
        ([0.0, *ramped(30, 0.1)], None),
        ([], None),
    ],
)
def test_a_trend_of_eight_samples_and_two_per_cent(
    samples: list[float], change: float | None
) -> None:
    found = drift_of(samples)
    assert found == (None if change is None else pytest.approx(change, abs=1e-3))
    if found is not None:  # whatever the unit, and the other way round from the end
        assert drift_of([7 * sample for sample in samples]) == pytest.approx(found)
        back = drift_of(samples[::-1])
        assert back is not None
        assert (1 + back) * (1 + found) == pytest.approx(1, abs=1e-9)


def test_chance_seldom_looks_like_it() -> None:
    rng = Random(1)
    noise = ([rng.lognormvariate(0, 0.05) for _ in range(20)] for _ in range(1000))
    assert sum(drift_of(samples) is not None for samples in noise) <= 10


def test_drift_of_times_is_said_and_fails_nothing(project: Project) -> None:
    ramp = ramped(10, 0.1)
    rate = metric(*ramp, unit="tok/s", kind="throughput", better="higher")
    write_model(project, latency=metric(*ramp), rate=rate)
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 0
    assert [line for line in ran.text.splitlines() if line.startswith("drift ")] == [
        f"drift {MODEL}: latency got 7.7 % slower in the course of 10 samples: a clock or a "
        "temperature that had not settled; more warm-up may help"
    ]
