"""``--ttnn-perf-update=improved``: keeps gains, and gathers sessions of what stayed the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    metric,
    outcomes,
    store_sessions,
    stored_metric,
    write_latency,
    write_model,
)
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from tests.harness.project import Project

IMPROVED = "--ttnn-perf-update=improved"
#: As many sessions as are kept since the last accept.
FULL = 20


@pytest.fixture
def known(project: Project) -> Project:
    """A project whose test has a baseline of 12.5 ms."""
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-reason=first")
    return project


def test_improvement_starts_a_new_centre_and_keeps_the_old_sessions(known: Project) -> None:
    store_sessions(known, [12.5, 0, 1], [12.6, 0, 1])
    write_latency(known, 6.5)

    ran = known.pytest(IMPROVED, "--ttnn-perf-reason=fused")

    assert counts_of(ran) == "1 passed"
    assert stored_metric(known)["sessions"] == [[12.5, 0, 1], [12.6, 0, 1], [6.5, 0, 1]]
    assert stored_metric(known)["since"] == 2
    assert known.stored()["test_model"]["accepted"]["reason"] == "fused"

    write_latency(known, 12.5)
    known.pytest("--ttnn-perf")
    assert outcomes(known) == {"latency": "REGRESSED"}


def test_session_within_limits_is_appended_and_is_no_decision(known: Project) -> None:
    accepted = known.stored()["test_model"]["accepted"]
    write_latency(known, 12.6)

    ran = known.pytest(IMPROVED, "--ttnn-perf-reason=another")

    assert counts_of(ran) == "1 passed"
    assert stored_metric(known)["sessions"] == [[12.5, 0, 1], [12.6, 0, 1]]
    assert stored_metric(known)["since"] == 0
    assert known.stored()["test_model"]["accepted"] == accepted


@pytest.mark.parametrize("since", [0, 3])
def test_full_list_is_not_rolled(known: Project, since: int) -> None:
    store_sessions(known, *[[12.5, 0, 1]] * (since + FULL), since=since)
    before = known.baseline().read_text()
    write_latency(known, 12.6)

    ran = known.pytest(IMPROVED)

    assert counts_of(ran) == "1 passed"
    assert known.baseline().read_text() == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (metric(12.5), metric(25.5)),
        (metric(7, unit="", kind="count"), metric(8, unit="", kind="count")),
        (metric(7, unit="", better="equal"), metric(6, unit="", better="equal")),
        (metric(0.99, unit="", kind="accuracy", better="higher"),
         metric(0.98, unit="", kind="accuracy", better="higher")),
    ],
    ids=["time", "count", "equal", "accuracy"],
)  # fmt: skip
def test_loss_is_not_written_and_takes_the_gain_beside_it_along(
    project: Project, before: dict[str, object], after: dict[str, object]
) -> None:
    write_model(project, latency=metric(12.5), other=before)
    project.pytest("--ttnn-perf-update=new")
    text = project.baseline().read_text()
    write_model(project, latency=metric(6.5), other=after)

    ran = project.pytest(IMPROVED)

    assert counts_of(ran) == "1 failed"
    assert outcomes(project) == {"latency": "IMPROVED", "other": "REGRESSED"}
    assert project.baseline().read_text() == text


@pytest.mark.parametrize(("ops", "is_written"), [(5, False), (9, True)])
def test_a_gain_with_far_fewer_ops_takes_a_reason(
    project: Project, ops: int, is_written: bool
) -> None:
    """A capture that was cut at the end of a row has half of the ops, and half of the time."""
    source = """
        from pathlib import Path

        def test_model(ttnn_perf):
            ttnn_perf.attach(Path(__file__).with_name("ops.csv"))
    """
    project.write(test_model=source)
    lines = capture(*(op("MatmulDeviceOperation", 90_000) for _ in range(10))).splitlines()
    file = project.path / "ops.csv"
    file.write_text("\n".join(lines) + "\n")
    assert project.pytest("--ttnn-perf-update=new").code == 0
    before = project.stored()["test_model"]
    file.write_text("\n".join(lines[: ops - 10]) + "\n")

    ran = project.pytest("--ttnn-perf-update")

    assert (project.stored()["test_model"] != before) is is_written
    assert ("faster; ops changed: 10 → 5" in ran.text) is not is_written
    assert ("accept it with: ttnn-perf baseline accept" in ran.text) is not is_written
    why = ("--ttnn-perf-update=all", "--ttnn-perf-reason=fused")
    assert project.pytest(*why).code == 0
    assert project.stored()["test_model"] != before
