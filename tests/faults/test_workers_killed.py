"""A worker that dies costs the test it was running: told by name, recorded, and the rest run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.behaviour.model import counts_of, failure_of
from tests.faults.workers import (
    CONFIRMED,
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

#: One test dies in one phase; the tests around it tell that they ran, and where.
DYING = """
    import os, pytest
    from steps import count, kill

    @pytest.fixture
    def dies():
        {setup}
        yield
        {teardown}

    def test_before(ttnn_perf):
        count("pids")
        ttnn_perf.record("latency", 1.0, unit="ms")

    def test_dies(dies, ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")
        {call}

    def test_after(ttnn_perf):
        count("pids")
        ttnn_perf.record("latency", 1.0, unit="ms")
"""


def write_dying(project: Project, phase: str, way: str) -> None:
    """Write three tests of which the second dies in ``phase``."""
    phases = {"setup": "", "call": "", "teardown": ""}
    write_tests(project, DYING.format(**{**phases, phase: way}))


class Death(NamedTuple):
    """A way to die, and what is said of it."""

    phase: str
    way: str
    how: str
    heading: str
    counts: str
    junit: dict[str, int]


DEATHS = (
    Death("setup", "os._exit(9)", "ended with exit code 9", "ERROR at setup of test_dies",
          "2 passed, 1 error", {"tests": 3, "failures": 0, "errors": 1}),
    Death("call", "kill()", "was killed by SIGKILL", "test_dies",
          "1 failed, 2 passed", {"tests": 3, "failures": 1, "errors": 0}),
    Death("teardown", "kill(15)", "was killed by SIGTERM", "ERROR at teardown of test_dies",
          "3 passed, 1 error", {"tests": 3, "failures": 0, "errors": 1}),
)  # fmt: skip


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: death.phase)
def test_a_worker_that_dies_costs_the_test_it_was_running_and_no_other(
    project: Project, death: Death
) -> None:
    write_dying(project, death.phase, death.way)
    ran = run(project, "--junitxml=junit.xml")
    said, _, _ = told(failure_of(ran, death.heading), project).partition("\n- generated xml")
    log = "HERE/.ttnn_perf/passes/RUN-ID/1-wall/worker.log"
    assert said == f"its worker {death.how}; log: {log}"
    assert (counts_of(ran), ran.code) == (death.counts, 1)
    assert junit_counts(project.path / "junit.xml") == death.junit
    before, after = processes(project, "pids")
    assert before != after
    assert logs(project) == ["1-wall"]
    if death.phase == "call":
        assert_recorded_as_lost(project, ran)


def assert_recorded_as_lost(project: Project, ran: Ran) -> None:
    """Check what is recorded and said of the test whose worker was killed."""
    record = the_record(project)
    assert list(record["tests"]) == [
        f"test_model.py::{name}" for name in ("test_before", "test_dies", "test_after")
    ]
    lost = entry_of(record, "test_dies")
    (log,) = project.path.glob(".ttnn_perf/passes/*/1-wall/worker.log")
    assert lost["lost"] == f"was killed by SIGKILL; log: {log}"
    assert outcome_of(record, "test_dies") == "NO_DATA"
    sentence = clean(f"nothing was judged: its worker {lost['lost']}")
    assert clean(lost["verdicts"]["-"]["sentence"]) == sentence
    assert f"\nits worker {clean(lost['lost'])}\n" in ran.text
    # All that was collected has an outcome.
    assert "complete" not in record


def test_a_crash_shows_the_line_of_the_test_that_led_to_it(project: Project) -> None:
    # pytest's own frames alone are longer than what is shown of a log.
    way = "__import__('ctypes').string_at(0)"
    write_dying(project, "call", way)
    line = 1 + (project.path / "test_model.py").read_text().splitlines().index(f"    {way}")
    text = told(failure_of(run(project), "test_dies"), project)
    assert text.startswith("its worker was killed by SIGSEGV; log: ")
    assert "\nFatal Python error: Segmentation fault\n" in text
    assert f'\n  File "HERE/test_model.py", line {line} in test_dies\n' in text


def test_the_last_words_of_a_worker_are_shown(project: Project) -> None:
    write_dying(project, "call", "print('one', 'two', sep=chr(10)); kill()")
    text = told(failure_of(run(project, "-s"), "test_dies"), project)
    assert text.splitlines()[1:] == ["one", "two"]


def test_what_was_held_back_before_a_worker_died_is_still_confirmed(project: Project) -> None:
    store(project, "test_slow", "test_lucky", "test_dies")
    write_tests(
        project,
        """
        from steps import count, kill

        def test_slow(ttnn_perf):
            ttnn_perf.record("latency", [2.0] * 3, unit="ms")

        def test_lucky(ttnn_perf):
            slow = count("runs") == 1
            ttnn_perf.record("latency", [2.0 if slow else 1.0] * 3, unit="ms")

        def test_dies(ttnn_perf):
            kill()
        """,
    )
    ran = run(project, *CONFIRMED)
    assert "confirm passes: 2.000 ms, 2.000 ms" in failure_of(ran, "test_slow")
    assert (counts_of(ran), ran.code) == ("2 failed, 1 passed", 1)
    record = the_record(project)
    names = ("test_slow", "test_lucky", "test_dies")
    assert [outcome_of(record, name) for name in names] == ["REGRESSED", "WITHIN", "NO_DATA"]
    # The one that died is not measured again: it has no result that could be in question.
    assert logs(project) == ["1-wall"]


def test_a_worker_that_dies_in_teardown_leaves_nothing_to_be_written(project: Project) -> None:
    write_dying(project, "teardown", "kill()")
    ran = run(project, "--ttnn-perf-update=new", "--ttnn-perf-confirm=1", "-k", "dies")
    assert "nothing was written: the test failed after its call, in its teardown" in ran.text
    assert ran.code == 1
    assert not (project.path / "baselines").exists()


def test_a_suspect_that_dies_in_its_teardown_is_reported_once(project: Project) -> None:
    store(project, "test_dies")
    write_dying(project, "teardown", "kill()")
    source = (project.path / "test_model.py").read_text().replace("1.0", "2.0")
    project.write(test_model=source)
    ran = run(project, *CONFIRMED, "-k", "dies", "--junitxml=junit.xml")
    assert "confirm passes: 2.000 ms, 2.000 ms" in failure_of(ran, "test_dies")
    assert "its worker was killed by SIGKILL" in failure_of(ran, "ERROR at teardown of test_dies")
    assert (counts_of(ran), ran.code) == ("1 failed, 2 deselected, 1 error", 1)


def test_tests_that_all_die_take_one_worker_each(project: Project) -> None:
    write_tests(
        project,
        """
        import pytest
        from steps import kill

        @pytest.mark.parametrize("n", range(4))
        def test_dies(ttnn_perf, n):
            kill()
        """,
    )
    ran = run(project)
    assert (counts_of(ran), ran.code) == ("4 failed", 1)
    assert logs(project) == [f"{n}-wall" for n in (1, 2, 3, 4)]


def test_with_x_no_worker_is_started_after_one_died(project: Project) -> None:
    write_dying(project, "call", "kill()")
    ran = run(project, "-x")
    assert (counts_of(ran), ran.code) == ("1 failed, 1 passed", 1)
    assert "stopping after 1 failures" in ran.text
    assert len(processes(project, "pids")) == 1


#: A simulator that says why it aborts, in Python and in C++, and is heard of no more.
ABORTING = """
    import os

    def test_before(ttnn_perf):
        print("long over")
        ttnn_perf.record("latency", 1.0, unit="ms")

    def test_aborts(ttnn_perf):
        print("said in Python")
        os.write(2, b"said in C++: L1 clash\\n")
        {end}
"""


@pytest.mark.parametrize("end", ["os._exit(3)", "os.abort()"])
@pytest.mark.parametrize("capture", ["fd", "tee-sys", "no"])
def test_what_a_process_printed_before_it_ended_is_in_its_log_and_told(
    project: Project, capture: str, end: str
) -> None:
    write_tests(project, ABORTING.format(end=end))
    ran = run(project, f"--capture={capture}", "--junitxml=junit.xml")
    assert (counts_of(ran), ran.code) == ("1 failed, 1 passed", 1)
    (log,) = project.path.glob(".ttnn_perf/passes/*/1-wall/worker.log")
    (failure,) = ET.parse(project.path / "junit.xml").getroot().iter("failure")
    for text in (log.read_text(), failure.text or ""):
        assert "said in C++: L1 clash" in text
        assert "said in Python" in text
    if capture == "fd":
        assert "long over" not in log.read_text(), "that was reported with its test"


def test_of_much_that_was_captured_the_end_is_kept(project: Project) -> None:
    source = """
        import os

        def test_prints(ttnn_perf):
            print("x" * 5_000_000 + "\\nthe end")
            os._exit(3)
    """
    write_tests(project, source)
    ran = run(project)
    (log,) = project.path.glob(".ttnn_perf/passes/*/1-wall/worker.log")
    assert log.stat().st_size < 1_100_000
    assert "captured stdout, the last 1,048,576 bytes of 5,000,009:" in log.read_text()
    assert failure_of(ran, "test_prints").splitlines()[-1] == "the end"
    assert [file.name for file in log.parent.iterdir() if "captured" in file.name] == []
