"""Ctrl-C, SIGTERM and SIGKILL of the run: fixtures end, the record stays, no process does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import (
    CONFIRMED,
    PATIENCE_S,
    assert_gone,
    entry_of,
    eventually,
    outcome_of,
    processes,
    store,
    the_record,
    write_tests,
)
from tests.harness.project import Ran, clean, run_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.project import Project

#: As from a terminal, also where whoever runs these tests ignores Ctrl-C, which children inherit.
_PYTEST = """
import signal, sys, pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(sys.argv[1:]))
"""
#: A suspect, and a test beside it: one of them waits, in the first pass or in a confirm pass.
WAITING = """
    import subprocess, sys, time, pytest
    from steps import HERE, count

    @pytest.fixture(scope="session")
    def device():
        yield
        {teardown}
        (HERE / "taken down").touch()

    def test_slow(device, ttnn_perf):
        ttnn_perf.record("latency", [2.0] * 3, unit="ms")
        if count("pids") == {slow_waits}:
            wait()

    def test_waits(ttnn_perf):
        ttnn_perf.record("latency", [1.0] * 3, unit="ms")
        if {other_waits}:
            wait()

    def wait():
        {start}
        (HERE / "waiting").touch()
        time.sleep(1000)
"""
#: A process beside the worker.
CHILD = """child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        (HERE / "child").write_text(str(child.pid))"""
PASSES = {
    "first pass": {"slow_waits": 0, "other_waits": True},
    "confirm pass": {"slow_waits": 2, "other_waits": False},
}


@dataclass(frozen=True, slots=True)
class Running:
    """A run under way."""

    project: Project
    process: subprocess.Popen[str]

    def wait_for(self, name: str) -> None:
        """Wait until a test has made a file."""
        path = self.project.path / name
        assert eventually(lambda: path.exists() or self.process.poll() is not None)
        assert path.exists(), self.process.communicate()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the orchestrator alone."""
        self.process.send_signal(number)

    def end(self) -> Ran:
        """Return how it ended."""
        text, errors = self.process.communicate(timeout=PATIENCE_S)
        return Ran(self.process.returncode, clean(text), clean(errors))


@contextmanager
def running(project: Project, *arguments: str) -> Iterator[Running]:
    """Start a run in workers, with a baseline for both tests."""
    command = [sys.executable, "-c", _PYTEST, "-p", "no:hypothesispytest", "--ttnn-perf"]
    with subprocess.Popen(
        [*command, *CONFIRMED, *arguments],
        cwd=project.path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Running(project, process)
        finally:
            process.kill()


def write_waiting(
    project: Project, where: str = "first pass", *, start: str = "", teardown: str = ""
) -> None:
    """Store baselines of both tests, then let one of them wait."""
    store(project, "test_slow", "test_waits")
    source = WAITING.format(**PASSES[where], start=start, teardown=teardown)
    write_tests(project, source)


def test_ctrl_c_takes_fixtures_down_and_leaves_the_record_and_no_process(
    project: Project,
) -> None:
    write_waiting(project, "confirm pass", start=CHILD)
    with running(project) as under_way:
        under_way.wait_for("waiting")
        under_way.send(signal.SIGINT)
        ran = under_way.end()
    assert ran.code == pytest.ExitCode.INTERRUPTED
    assert_no_traceback(ran)
    assert (project.path / "taken down").exists()
    record = the_record(project)
    assert record["complete"] is False
    slow = entry_of(record, "test_slow")
    assert slow["unconfirmed"] == "the run stopped before it was measured again"
    assert slow["metrics"]["latency"]["samples"] == [2.0] * 3
    assert outcome_of(record, "test_slow") == "NO_DATA"
    assert list(project.path.glob(".ttnn_perf/runs/*.jsonl")) == []
    assert_gone([*processes(project, "pids"), *processes(project, "child")])


def test_a_second_ctrl_c_waits_for_no_fixture(project: Project) -> None:
    write_waiting(project, start=CHILD, teardown='(HERE / "teardown").touch(); time.sleep(1000)')
    # Nor for the grace that a worker is given after the first: here it has no end.
    project.write(
        conftest="from pytest_ttnn_perf.machine import processes; processes._GRACE_S = 1000"
    )
    with running(project) as under_way:
        under_way.wait_for("waiting")
        under_way.send(signal.SIGINT)
        under_way.wait_for("teardown")
        under_way.send(signal.SIGINT)
        ran = under_way.end()
    assert ran.code == pytest.ExitCode.INTERRUPTED
    assert_gone([*processes(project, "pids"), *processes(project, "child")])
    assert the_record(project)["complete"] is False


#: Ctrl-C comes when a test has been measured in its worker.
INTERRUPTED = """
    import os, signal, time
    import pytest

    lead = int(os.environ.setdefault("LEAD", str(os.getpid())))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(item, call):
        result = yield
        if lead != os.getpid() and call.when == "call":
            os.kill(lead, signal.SIGINT)
            time.sleep(0.5)  # for the orchestrator to interrupt the worker in turn
        return result
"""


def test_ctrl_c_when_a_test_has_been_measured_keeps_its_result(project: Project) -> None:
    write_tests(
        project,
        """
        import time

        def test_first(ttnn_perf):
            ttnn_perf.record("latency", [1.0] * 3, unit="ms")

        def test_second(ttnn_perf):
            time.sleep(1000)
        """,
        conftest=INTERRUPTED,
    )
    with running(project, "--ttnn-perf-missing=warn") as under_way:
        ran = under_way.end()
    assert ran.code == pytest.ExitCode.INTERRUPTED, ran.text
    assert_no_traceback(ran)
    record = the_record(project)
    assert record["complete"] is False
    assert entry_of(record, "test_first")["metrics"]["latency"]["samples"] == [1.0] * 3
    assert list(record["tests"]) == ["test_model.py::test_first"]


def test_a_run_that_is_killed_takes_its_worker_along_and_leaves_its_journal(
    project: Project,
) -> None:
    write_waiting(project, "confirm pass")
    with running(project) as under_way:
        under_way.wait_for("waiting")
        under_way.send(signal.SIGKILL)
        assert under_way.process.wait(PATIENCE_S) == -signal.SIGKILL
    assert_gone(processes(project, "pids"))
    (journal,) = project.path.glob(".ttnn_perf/runs/*.jsonl")
    gated = run_command("gate", journal, "--format", "json")
    verdicts = json.loads(gated.text)["verdicts"]
    assert (verdicts[0]["test"], verdicts[0]["outcome"]) == (
        "test_model.py::test_slow",
        "REGRESSED",
    )
    assert gated.code == 1
    assert_no_traceback(gated)
