"""The whole output of ``ttnn-perf calibrate`` in every shape, and with mishaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import metric
from tests.behaviour.turns import write_turns
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.behaviour.turns import Turn
    from tests.harness.project import Project


@pytest.fixture
def decoder(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a test that is steady, and one that differs from session to session."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark")
    write_turns(
        project,
        decode=[_decode(10.0), _decode(10.3)],
        prefill=[{"latency": metric(2.0), "ops": metric(7, unit="", kind="count")}],
    )
    return project


def _decode(latency: float) -> Turn:
    samples = [latency * factor for factor in (0.99, 1.0, 1.01, 1.02)]
    rates = [1000 / sample for sample in samples]
    rate = metric(*rates, unit="tok/s", kind="throughput", better="higher")
    return {"latency": metric(*samples), "rate": rate}


def test_the_table_of_a_calibration(decoder: Project) -> None:
    ran = decoder.cli("calibrate", "test_model.py", "--sessions", "2")
    assert ran.code == 0
    assert_golden("calibrate_table", ran.text)
