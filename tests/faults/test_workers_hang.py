"""A worker that hangs is killed with all that it started, and what outlives it holds up nobody."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, failure_of
from tests.faults.workers import (
    assert_gone,
    is_running,
    logs,
    outcome_of,
    processes,
    run,
    the_record,
    told,
    write_tests,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.project import Project

#: More than a worker takes to start on a busy machine.
TIMEOUT = "--ttnn-perf-timeout=60"
HUNG = "its worker hung: no sign of life for 60 s, killed; log: HERE/.ttnn_perf/passes/RUN-ID"


@pytest.mark.usefixtures("time_flies")
def test_a_worker_that_hangs_is_killed_with_what_it_started(project: Project) -> None:
    write_tests(
        project,
        """
        import signal, subprocess, sys, time_flies
        from steps import HERE, count

        def test_hangs(ttnn_perf):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            count("pids")
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            with (HERE / "pids").open("a") as file:
                file.write(f"{child.pid}\\n")
            time_flies.hang()

        def test_after(ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")
        """,
    )
    ran = run(project, TIMEOUT)
    said, thread, _, frame, *_ = told(failure_of(ran, "test_hangs"), project).splitlines()
    assert said == f"{HUNG}/1-wall/worker.log"
    assert thread.startswith("Current thread ")
    assert frame.endswith(" in test_hangs")
    assert (counts_of(ran), ran.code) == ("1 failed, 1 passed", 1)
    assert outcome_of(the_record(project), "test_hangs") == "NO_DATA"
    assert_gone(processes(project, "pids"))
    assert logs(project) == ["1-wall"]


@pytest.mark.usefixtures("time_flies")
def test_a_hang_in_the_teardown_of_the_session_fails_the_last_test_there(project: Project) -> None:
    write_tests(
        project,
        """
        import time_flies, pytest

        @pytest.fixture(scope="session")
        def device():
            yield
            time_flies.hang()

        def test_first(device, ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")

        def test_last(ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")
        """,
    )
    ran = run(project, TIMEOUT)
    said, _, _, frame, *_ = told(
        failure_of(ran, "ERROR at teardown of test_last"), project
    ).splitlines()
    assert said == f"{HUNG}/1-wall/worker.log"
    assert frame.endswith(" in device")
    assert (counts_of(ran), ran.code) == ("2 passed, 1 error", 1)


def _place(project: Project, line: str, function: str) -> str:
    """Return the frame of a stack that is at a line of the tests."""
    number = 1 + (project.path / "test_model.py").read_text().splitlines().index(line)
    return f'  File "HERE/test_model.py", line {number} in {function}'


#: How a test leaves a process behind, which writes its id into a file: each holds something open.
LEFT_BEHIND = {
    "a fork, which has the channel": """
        if os.fork() == 0:
            count("left")
            time.sleep(1000)
            os._exit(0)
    """,
    "a fork that has left the group": """
        if os.fork() == 0:
            os.setsid()
            count("left")
            time.sleep(1000)
            os._exit(0)
    """,
    "a daemon, which nobody of ours has started": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                count("left")
                time.sleep(1000)
            os._exit(0)
        os.wait()
    """,
    "a daemon that never stops printing": """
        source = "import os, sys; open('left', 'w').write(str(os.getpid()))\\nwhile True: print(7)"
        subprocess.Popen([sys.executable, "-c", source], start_new_session=True)
    """,
}


#: What a plugin starts in the orchestrator before any test runs is none of our business.
BEFORE = """
    import os, subprocess, sys

    if "LEAD" not in os.environ:
        os.environ["LEAD"] = "taken"
        words = [sys.executable, "-c", "import time; time.sleep(1000)"]
        none = subprocess.DEVNULL
        started = subprocess.Popen(words, start_new_session=True, stdout=none, stderr=none)
        with open("before", "w") as file:
            file.write(str(started.pid))
"""


@pytest.fixture
def leftovers(project: Project) -> Iterator[None]:
    """End what was started on purpose, if nobody else has."""
    yield
    for pid in (*processes(project, "left"), *processes(project, "before")):
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.usefixtures("leftovers")
@pytest.mark.parametrize("what", LEFT_BEHIND)
def test_what_a_test_leaves_behind_is_ended_and_does_not_hold_up_the_run(
    project: Project, what: str
) -> None:
    indented = LEFT_BEHIND[what].replace("\n    ", "\n        ")
    write_tests(
        project,
        f"""
        import os, subprocess, sys, time
        from steps import HERE, count

        def test_leaves(ttnn_perf):
            {indented.strip()}
            while not (HERE / "left").exists() or not (HERE / "left").read_text().strip():
                time.sleep(0.01)
            ttnn_perf.record("latency", 1.0, unit="ms")

        def test_after(ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")
        """,
        conftest=BEFORE,
    )
    ran = run(project, "-s")  # which makes the output a pipe to us
    assert (counts_of(ran), ran.code) == ("2 passed", 0)
    assert logs(project) == []
    if sys.platform.startswith("linux"):
        assert not any(map(is_running, processes(project, "left")))
    assert all(map(is_running, processes(project, "before")))
