"""A gated run from its first line to its exit code, and runs that end before their time."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    record_of,
    refusal_of,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_several_processes_are_refused_inline(project: Project) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf", "-n", "2", "--ttnn-perf-isolate", "inline")

    assert refusal_of(ran) == (
        "--ttnn-perf measures in this process alone: run it without -n, --tx, --forked, "
        "or with --ttnn-perf-isolate process"
    )
    assert project.files() == {"test_model.py", "numbers.json"}


INTERRUPTED = """
    def test_first(ttnn_perf):
        ttnn_perf.record("latency", 12.5, unit="ms")

    def test_second(ttnn_perf):
        ttnn_perf.record("latency", 12.5, unit="ms")
        raise KeyboardInterrupt

    def test_third(ttnn_perf):
        ttnn_perf.record("latency", 12.5, unit="ms")
"""


def test_interrupted_run_keeps_the_record_of_what_ended_before_and_never_passes(
    project: Project,
) -> None:
    project.write(test_model=INTERRUPTED)

    ran = project.pytest_process("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert ran.code == 2
    assert list(record_of(project)["tests"]) == ["test_model.py::test_first"]
    document = json.loads((project.path / "run.json").read_text())
    assert document == record_of(project)
    assert list(project.stored()) == ["test_first"]
    counted = "1 test gated; 1 recorded; metrics: 1 RECORDED; checklist: 1 warning"
    assert counted in ran.text.splitlines()
    gated = project.cli("gate", "run.json")
    assert gated.code == 1
    assert gated.text.splitlines()[-1] == "failed: the run was cut short after 1 test"
    assert "tests: 1 (the run was cut short)" in project.cli("show", "run.json").text
    assert json.loads(project.cli("gate", "run.json", "--format=json").text)["complete"] is False


def test_error_while_collecting_leaves_nothing_behind(project: Project) -> None:
    write_latency(project, 12.5)
    project.write(test_broken="import no_such_module")

    ran = project.pytest("--ttnn-perf-update=new")

    assert (ran.code, counts_of(ran)) == (2, "1 error")
    assert not (project.path / "baselines").exists()
    assert not list(project.path.glob(".ttnn_perf/runs/*"))


def test_a_run_that_was_cut_short_is_not_complete_whatever_its_exit_code(project: Project) -> None:
    exits = "pytest.exit('enough', returncode=0)"
    source = dedent(INTERRUPTED).replace("raise KeyboardInterrupt", exits)
    project.write(test_model=f"import pytest\n{source}")

    ran = project.pytest_process("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert ran.code != 0
    assert json.loads((project.path / "run.json").read_text())["complete"] is False
    gated = project.cli("gate", "run.json")
    assert gated.code == 1
    assert gated.text.splitlines()[-1] == "failed: the run was cut short after 1 test"
