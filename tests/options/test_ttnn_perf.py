"""``--ttnn-perf`` and ``enabled``: nothing happens without them, everything with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    configure,
    counts_of,
    failure_of,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_regression_fails_the_test_with_the_whole_sentence(project: Project) -> None:
    write_latency(project, 12.5, 12.5)
    project.pytest("--ttnn-perf-update=new")
    write_latency(project, 15.25, 15.25)

    ran = project.pytest("--ttnn-perf")

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    assert failure_of(ran).splitlines()[0] == (
        "REGRESSED: latency 15.25 ms, baseline 12.50 ms: 22.0 % slower, limit 9.1 % "
        "(2 samples against 1 session; sample noise assumed; one run seen)"
    )


def test_idle_run_leaves_no_trace(project: Project) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    write_latency(project, 99.5)
    before = {name: (project.path / name).read_bytes() for name in project.files()}

    ran = project.pytest()

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    assert "ttnn-perf" not in ran.text
    assert {name: (project.path / name).read_bytes() for name in project.files()} == before


def test_idle_run_fails_what_fails_without_the_plugin(project: Project) -> None:
    project.write(test_model="def test_model(ttnn_perf): assert ttnn_perf.measure(int) == 1")

    ran = project.pytest()

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    assert project.files() == {"test_model.py"}


@pytest.mark.parametrize(
    "arguments",
    [["--ttnn-perf"], ["--ttnn-perf-all"], ["--ttnn-perf-update"]],
    ids=lambda arguments: arguments[0],
)
def test_options_that_turn_the_gate_on(project: Project, arguments: list[str]) -> None:
    write_latency(project, 12.5)

    assert "\nttnn-perf: gate on, key host-ARCH, " in project.pytest(*arguments).text


def test_enabled_turns_the_gate_on(project: Project) -> None:
    write_latency(project, 12.5)
    configure(project, "enabled = true")

    ran = project.pytest()

    assert counts_of(ran) == "1 failed"
    assert failure_of(ran).startswith("NO_BASELINE: latency 12.50 ms has no baseline")


@pytest.mark.parametrize("line", ["enabled = false", "all = true", 'update = "new"'])
def test_configuration_alone_does_not_gate(project: Project, line: str) -> None:
    write_latency(project, 12.5)
    configure(project, line)

    ran = project.pytest()

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    assert project.files() == {"test_model.py", "numbers.json", "pyproject.toml"}


def test_option_wins_over_a_configuration_that_says_off(project: Project) -> None:
    write_latency(project, 12.5)
    configure(project, "enabled = false")

    assert counts_of(project.pytest("--ttnn-perf")) == "1 failed"
