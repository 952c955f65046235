"""Workers that die where no test is running: while they collect, and after their last test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, failure_of
from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import logs, run, the_record, told, write_tests

if TYPE_CHECKING:
    from tests.harness.project import Project

FINE = """
    from steps import count, kill

    def test_fine(ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")
"""


def test_a_worker_that_dies_while_it_collects_ends_the_run_with_its_last_words(
    project: Project,
) -> None:
    write_tests(
        project,
        FINE,
        conftest="""
        import os

        def pytest_collect_file(file_path):
            os.write(2, b"no device answers\\n")
            os._exit(7)
        """,
    )
    ran = run(project)
    log = "HERE/.ttnn_perf/passes/RUN-ID/1-wall/worker.log"
    said = f"the worker ended with exit code 7; log: {log}, before it had collected the tests"
    assert f"ttnn-perf: {said}\nno device answers" in told(ran.text, project)
    assert_no_traceback(ran)
    assert ran.code == 3
    assert not (project.path / ".ttnn_perf" / "runs").exists()


@pytest.mark.usefixtures("time_flies")
def test_a_worker_that_hangs_while_it_collects_ends_the_run(project: Project) -> None:
    write_tests(project, "import time_flies; time_flies.hang()")
    ran = run(project, "--ttnn-perf-timeout=60")
    assert "ttnn-perf: the worker hung: no sign of life for 60 s, killed; log: " in ran.text
    assert "worker.log, before it had collected the tests" in ran.text
    assert ran.code == 3


def test_tests_that_no_worker_comes_to_run_fail_by_name(project: Project) -> None:
    # The first worker dies in a test, the second before it has collected anything.
    write_tests(
        project,
        """
        from steps import count, kill

        if count("collections") == 2:
            kill()

        def test_dies(ttnn_perf):
            kill()

        def test_left(ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")

        def test_left_unmeasured():
            pass
        """,
    )
    ran = run(project)
    log = "HERE/.ttnn_perf/passes/RUN-ID/2-wall/worker.log"
    assert f"\nttnn-perf: a worker was killed by SIGKILL; log: {log}\n" in told(ran.text, project)
    for test in ("test_left", "test_left_unmeasured"):
        said = "its worker ended before this test could run"
        assert failure_of(ran, f"ERROR at setup of {test}") == said
    assert (counts_of(ran), ran.code) == ("1 failed, 2 errors", 1)
    assert list(the_record(project)["tests"]) == [
        "test_model.py::test_dies",
        "test_model.py::test_left",
    ]
    assert logs(project) == ["1-wall", "2-wall"]


def test_tests_that_are_gone_when_the_next_worker_collects_fail_by_name(project: Project) -> None:
    write_tests(
        project,
        """
        from steps import count, kill

        def test_dies(ttnn_perf):
            kill()

        if count("collections") == 1:
            def test_gone(ttnn_perf):
                pass
        """,
    )
    ran = run(project)
    said = "its worker ended before this test could run"
    assert failure_of(ran, "ERROR at setup of test_gone") == said
    assert (counts_of(ran), ran.code) == ("1 failed, 1 error", 1)


def test_a_worker_that_dies_after_its_last_test_does_not_look_fine(project: Project) -> None:
    write_tests(
        project,
        FINE,
        conftest="""
        import os

        def pytest_sessionfinish(session):
            if session.testscollected and not session.config.pluginmanager.has_plugin(
                "ttnn_perf_orchestrator"
            ):
                os.abort()
        """,
    )
    ran = run(project)
    log = "HERE/.ttnn_perf/passes/RUN-ID/1-wall/worker.log"
    said = f"ttnn-perf: a worker was killed by SIGABRT; log: {log}"
    assert said in told(ran.text, project).splitlines()
    assert "1 passed" in counts_of(ran)
    assert ran.code == 1


@pytest.mark.usefixtures("time_flies")
def test_a_worker_that_hangs_as_it_exits_is_not_waited_for_for_ever(project: Project) -> None:
    write_tests(
        project,
        """
        import threading, time_flies

        def hang_at_exit():
            threading.main_thread().join()
            time_flies.hang()

        def test_fine(ttnn_perf):
            ttnn_perf.record("latency", 1.0, unit="ms")
            threading.Thread(target=hang_at_exit).start()
        """,
    )
    ran = run(project, "--ttnn-perf-timeout=60")
    assert (counts_of(ran), ran.code) == ("1 passed", 0)
