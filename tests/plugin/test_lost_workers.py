"""Workers that die or hang: one test's cost, told by name and recorded, and the rest run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of, failure_of
from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import (
    CONFIRMED,
    assert_gone,
    entry_of,
    junit_counts,
    logs,
    outcome_of,
    processes,
    run,
    store,
    the_record,
    told,
    write_tests,
)
from tests.harness.project import clean

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

LOGS = "HERE/.ttnn_perf/passes/RUN-ID"

#: A test dies in each phase; those around them tell that they ran, and where.
DYING = """
    import os, pytest
    from steps import count, kill

    @pytest.fixture
    def in_setup():
        os._exit(9)

    @pytest.fixture
    def in_teardown():
        yield
        kill(15)

    def test_before(ttnn_perf):
        count("pids")
        ttnn_perf.record("latency", 1.0, unit="ms")

    def test_setup(in_setup, ttnn_perf):
        pass

    def test_call(ttnn_perf):
        kill()

    def test_teardown(in_teardown, ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")

    def test_after(ttnn_perf):
        count("pids")
        ttnn_perf.record("latency", 1.0, unit="ms")
"""
DEATHS = {
    "ERROR at setup of test_setup": "ended with exit code 9",
    "test_call": "was killed by SIGKILL",
    "ERROR at teardown of test_teardown": "was killed by SIGTERM",
}


def test_a_worker_that_dies_costs_the_test_it_was_running_and_no_other(project: Project) -> None:
    write_tests(project, DYING)
    ran = run(project, "--junitxml=junit.xml")
    for number, (heading, how) in enumerate(DEATHS.items(), start=1):
        said, _, _ = told(failure_of(ran, heading), project).partition("\n- generated xml")
        assert said == f"its worker {how}; log: {LOGS}/{number}-wall/worker.log"
    assert (counts_of(ran), ran.code) == ("1 failed, 3 passed, 2 errors", 1)
    counts = junit_counts(project.path / "junit.xml")
    assert counts == {"tests": 5, "failures": 1, "errors": 2}
    assert logs(project) == ["1-wall", "2-wall", "3-wall"], "that of the last is not kept"
    before, after = processes(project, "pids")
    assert before != after

    record = the_record(project)
    names = [name.rpartition("_")[2] for name in record["tests"]]
    assert names == ["before", "setup", "call", "teardown", "after"]
    lost = entry_of(record, "test_call")
    (log,) = project.path.glob(".ttnn_perf/passes/*/2-wall/worker.log")
    assert lost["lost"] == f"was killed by SIGKILL; log: {log}"
    assert outcome_of(record, "test_call") == "NO_DATA"
    sentence = clean(f"nothing was judged: its worker {lost['lost']}")
    assert clean(lost["verdicts"]["-"]["sentence"]) == sentence
    assert "complete" not in record, "all that was collected has an outcome"


#: A simulator that says why it aborts, in Python and in C++, and is heard of no more.
ABORTING = """
    import os

    def test_before(ttnn_perf):
        print("long over")
        ttnn_perf.record("latency", 1.0, unit="ms")

    def test_aborts(ttnn_perf):
        print("x" * 5_000_000)
        print("said in Python")
        os.write(2, b"said in C++: L1 clash\\n")
        os.abort()

    def test_dies(ttnn_perf):
        __import__('ctypes').string_at(0)
"""


def test_the_end_of_what_a_process_printed_before_it_ended_is_in_its_log_and_told(
    project: Project,
) -> None:
    write_tests(project, ABORTING)
    ran = run(project, "--junitxml=junit.xml")
    assert (counts_of(ran), ran.code) == ("2 failed, 1 passed", 1)
    # pytest's own frames alone are longer than what is shown of a log.
    text = told(failure_of(ran, "test_dies"), project)
    assert text.startswith("its worker was killed by SIGSEGV; log: ")
    assert '\n  File "HERE/test_model.py", line 14 in test_dies\n' in text
    (log,) = project.path.glob(".ttnn_perf/passes/*/1-wall/worker.log")
    failure, _ = ET.parse(project.path / "junit.xml").getroot().iter("failure")
    for text in (log.read_text(), failure.text or ""):
        assert "said in C++: L1 clash" in text
        assert "said in Python" in text
    assert "long over" not in log.read_text(), "that was reported with its test"
    assert log.stat().st_size < 1_100_000
    assert "captured stdout, the last 1,048,576 bytes of " in log.read_text()
    assert [file.name for file in log.parent.iterdir() if "captured" in file.name] == []


def test_with_x_no_worker_is_started_after_one_died(project: Project) -> None:
    write_tests(project, DYING)
    ran = run(project, "-x")
    assert (counts_of(ran), ran.code) == ("1 passed, 1 error", 1)
    assert "stopping after 1 failures" in ran.text
    assert len(processes(project, "pids")) == 1


def test_a_worker_that_dies_while_it_collects_ends_the_run_with_its_last_words(
    project: Project,
) -> None:
    conftest = """
        import os

        def pytest_collect_file(file_path):
            os.write(2, b"no device answers\\n")
            os._exit(7)
    """
    write_tests(project, "def test_fine(): pass", conftest=conftest)
    ran = run(project)
    log = f"{LOGS}/1-wall/worker.log"
    said = f"the worker ended with exit code 7; log: {log}, before it had collected the tests"
    assert f"ttnn-perf: {said}\nno device answers" in told(ran.text, project)
    assert_no_traceback(ran)
    assert ran.code == 3
    assert not (project.path / ".ttnn_perf" / "runs").exists()


def test_tests_that_no_worker_comes_to_run_fail_by_name(project: Project) -> None:
    # The first worker dies in a test, the second before it has collected anything.
    write_tests(
        project,
        """
        import pytest
        from steps import count, kill

        if count("collections") == 2:
            kill()

        def test_dies(ttnn_perf):
            kill()

        def test_left(ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")

        class TestLeft:
            @pytest.mark.parametrize("batch", [1])
            def test_unmeasured(self, batch): pass
        """,
    )
    ran = run(project)
    log = f"{LOGS}/2-wall/worker.log"
    assert f"\nttnn-perf: a worker was killed by SIGKILL; log: {log}\n" in told(ran.text, project)
    for test in ("test_left", "TestLeft.test_unmeasured[1]"):
        said = "its worker ended before this test could run"
        assert failure_of(ran, f"ERROR at setup of {test}") == said
    assert (counts_of(ran), ran.code) == ("1 failed, 2 errors", 1)
    assert [test.rpartition("_")[2] for test in the_record(project)["tests"]] == ["dies", "left"]


def test_a_worker_that_dies_after_its_last_test_does_not_look_fine(project: Project) -> None:
    conftest = """
        import os

        def pytest_sessionfinish(session):
            if not session.config.pluginmanager.has_plugin("ttnn_perf_orchestrator"):
                os.abort()
    """
    write_tests(project, "def test_fine(ttnn_perf): pass", conftest=conftest)
    ran = run(project, "-k", "fine", "--ttnn-perf-missing=ignore")
    said = f"ttnn-perf: a worker was killed by SIGABRT; log: {LOGS}/1-wall/worker.log"
    assert said in told(ran.text, project).splitlines()
    assert ran.code == 1


@pytest.mark.usefixtures("time_flies")
def test_a_worker_that_hangs_is_killed_with_what_it_started(project: Project) -> None:
    write_tests(
        project,
        """
        import signal, subprocess, sys, threading, time_flies
        from steps import HERE, count

        def test_hangs(ttnn_perf):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            count("pids")
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            with (HERE / "pids").open("a") as file:
                file.write(f"{child.pid}\\n")
            time_flies.hang()

        def hang_at_exit():
            threading.main_thread().join()
            time_flies.hang()

        def test_after(ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")
            threading.Thread(target=hang_at_exit).start()
        """,
    )
    configure(project, "timeout = 60")
    ran = run(project)
    said, thread, _, frame, *_ = told(failure_of(ran, "test_hangs"), project).splitlines()
    how = "its worker hung: no sign of life for 60 s, killed; log: "
    assert said == f"{how}{LOGS}/1-wall/worker.log"
    assert thread.startswith("Current thread ")
    assert frame.endswith(" in test_hangs")
    # The second one hangs as it exits: nobody waits for that for ever.
    assert (counts_of(ran), ran.code) == ("1 failed, 1 passed", 1)
    assert outcome_of(the_record(project), "test_hangs") == "NO_DATA"
    assert_gone(processes(project, "pids"))
    assert logs(project) == ["1-wall"]


#: Each looks slower at first. What it does from the second time on, and what is said of it.
SUSPECTS = {
    "crashes": ("kill()", "its worker was killed by SIGKILL; log: LOGS/2-confirm/worker.log"),
    "hangs": (
        "time_flies.hang()",
        "its worker hung: no sign of life for 60 s, killed; log: LOGS/3-confirm/worker.log",
    ),
    "skips": ("pytest.skip('not now')", "the test did not run again"),
}
#: As many again that stay as they were, or the whole machine would look slower.
STEADY = 6


def _suspects() -> str:
    lines = ["import time_flies, pytest", "from steps import count, kill"]
    for name, (act, _) in SUSPECTS.items():
        lines += [
            f"def test_{name}(ttnn_perf):",
            f"    if count('{name}') > 1: {act}",
            "    ttnn_perf.record('latency', [2.0] * 3, unit='ms')",
        ]
    lines += [
        "def test_lucky(ttnn_perf):",
        "    latency = 2.0 if count('lucky') == 1 else 1.0",
        "    ttnn_perf.record('latency', [latency] * 3, unit='ms')",
    ]
    for number in range(STEADY):
        lines += [
            f"def test_steady_{number}(ttnn_perf):",
            "    ttnn_perf.record('latency', [1.0] * 3, unit='ms')",
        ]
    return "\n".join(lines)


def _why(ran: Ran, name: str, project: Project) -> str:
    """Return why a test could not be confirmed, as its failure says."""
    said = told(failure_of(ran, name), project).splitlines()[0]
    assert said.startswith("NO_DATA: latency "), said
    _, found, why = said.partition("could not be confirmed: confirm pass 1: ")
    assert found, said
    return why


@pytest.mark.usefixtures("time_flies")
def test_suspects_that_cannot_be_measured_again_fail_by_name_and_the_others_are_confirmed(
    project: Project,
) -> None:
    names = [*SUSPECTS, "lucky", *(f"steady_{n}" for n in range(STEADY))]
    store(project, *(f"test_{name}" for name in names))
    write_tests(project, _suspects())
    ran = run(project, *CONFIRMED, "--ttnn-perf-timeout=60")
    said = {name: _why(ran, f"test_{name}", project) for name in SUSPECTS}
    assert said == {name: why.replace("LOGS", LOGS) for name, (_, why) in SUSPECTS.items()}
    assert (counts_of(ran), ran.code) == (f"{len(SUSPECTS)} failed, {STEADY + 1} passed", 1)
    # Only those of the workers that did not come to their end.
    assert logs(project) == ["2-confirm", "3-confirm"]
    record = the_record(project)
    for name in SUSPECTS:
        entry = entry_of(record, f"test_{name}")
        # What was measured at first is kept; the pass that failed is there, empty.
        assert entry["metrics"]["latency"]["samples"] == [2.0] * 3
        assert entry["metrics"]["latency"]["confirmations"] == [[]]
        assert entry["unconfirmed"].startswith("confirm pass 1: ")
        assert outcome_of(record, f"test_{name}") == "NO_DATA"
    assert outcome_of(record, "test_lucky") == "WITHIN"
    lucky = entry_of(record, "test_lucky")["metrics"]["latency"]["confirmations"]
    assert lucky == [[1.0] * 3]
