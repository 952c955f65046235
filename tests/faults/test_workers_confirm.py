"""A confirm pass that cannot measure a suspect again says why, by name, and passes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, failure_of
from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import (
    CONFIRMED,
    entry_of,
    logs,
    outcome_of,
    run,
    store,
    the_record,
    told,
    write_tests,
)

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

#: Each looks slower at first. What it does from the second time on, and what is said of it.
SUSPECTS = {
    "crashes": ("kill()", "its worker was killed by SIGKILL; log: LOGS/2-confirm/worker.log"),
    "hangs": (
        "time_flies.hang()",
        "its worker hung: no sign of life for 60 s, killed; log: LOGS/3-confirm/worker.log",
    ),
    "raises": ("raise ValueError('no chip')", "the test raised ValueError: no chip"),
    "skips": ("pytest.skip('not now')", "the test did not run again"),
    "other_metric": (
        "return ttnn_perf.record('other', 1.0, unit='ms')",
        "the test did not record it",
    ),
    "other_facts": (
        "ttnn_perf.facts(use_trace=True)",
        "another configuration: use_trace is True, before None",
    ),
}
#: As many again that stay as they were, or the whole machine would look slower.
STEADY = 8
LOGS = "HERE/.ttnn_perf/passes/RUN-ID"


def _suspects() -> str:
    lines = ["import time_flies, pytest", "from steps import count, kill"]
    for name, (act, _) in SUSPECTS.items():
        lines += [
            f"def test_{name}(ttnn_perf):",
            f"    if count('{name}') > 1: {act}",
            "    ttnn_perf.record('latency', [2.0] * 3, unit='ms')",
        ]
    for name, again in (("slow", 2.0), ("lucky", 1.0)):
        lines += [
            f"def test_{name}(ttnn_perf):",
            f"    latency = 2.0 if count('{name}') == 1 else {again}",
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
    names = [*SUSPECTS, "slow", "lucky", *(f"steady_{n}" for n in range(STEADY))]
    store(project, *(f"test_{name}" for name in names))
    write_tests(project, _suspects())
    ran = run(project, *CONFIRMED, "--ttnn-perf-timeout=60")
    said = {name: _why(ran, f"test_{name}", project) for name in SUSPECTS}
    assert said == {name: why.replace("LOGS", LOGS) for name, (_, why) in SUSPECTS.items()}
    assert "confirm passes: 2.000 ms, 2.000 ms" in failure_of(ran, "test_slow")
    failed = len(SUSPECTS) + 1
    assert (counts_of(ran), ran.code) == (f"{failed} failed, {STEADY + 1} passed", 1)
    # Only those of the workers that did not come to their end.
    assert logs(project) == ["2-confirm", "3-confirm"]
    _check_record(project)


def _check_record(project: Project) -> None:
    record = the_record(project)
    for name in SUSPECTS:
        entry = entry_of(record, f"test_{name}")
        # What was measured at first is kept; the pass that failed is there, empty.
        assert entry["metrics"]["latency"]["samples"] == [2.0] * 3
        assert entry["metrics"]["latency"]["confirmations"] == [[]]
        assert entry["unconfirmed"].startswith("confirm pass 1: ")
        assert outcome_of(record, f"test_{name}") == "NO_DATA"
    assert outcome_of(record, "test_slow") == "REGRESSED"
    assert outcome_of(record, "test_lucky") == "WITHIN"
    lucky = entry_of(record, "test_lucky")["metrics"]["latency"]["confirmations"]
    assert lucky == [[1.0] * 3]


#: What the test does to its own file, or the file to its worker, and what is said of it.
UNCOLLECTED = {
    "deleted": ("", "Path(__file__).unlink()", (), "the test did not run again"),
    "deleted and asked for": (
        "",
        "Path(__file__).unlink()",
        ("test_model.py",),
        "file or directory not found: test_model.py",
    ),
    "broken": ("", "Path(__file__).write_text('(')", (), "1 error during collection"),
    "killed": (
        "if count('collections') == 2: kill()",
        "pass",
        (),
        "its worker was killed by SIGKILL; log: LOGS/2-confirm/worker.log",
    ),
}


@pytest.mark.parametrize("what", UNCOLLECTED)
def test_a_suspect_that_is_not_collected_again_fails_by_name(project: Project, what: str) -> None:
    start, act, arguments, why = UNCOLLECTED[what]
    store(project, "test_slow")
    write_tests(
        project,
        f"""
        from pathlib import Path
        from steps import count, kill
        {start}

        def test_slow(ttnn_perf):
            ttnn_perf.record("latency", [2.0] * 3, unit="ms")
            {act}
        """,
    )
    ran = run(project, *CONFIRMED, *arguments)
    assert _why(ran, "test_slow", project) == why.replace("LOGS", LOGS)
    assert (counts_of(ran), ran.code) == ("1 failed", 1)
    assert "confirm pass 2 of 2" not in ran.text
    assert_no_traceback(ran)


def test_a_suspect_that_dies_in_the_second_confirm_pass_keeps_the_samples_of_the_first(
    project: Project,
) -> None:
    store(project, "test_slow")
    write_tests(
        project,
        """
        from steps import count, kill

        def test_slow(ttnn_perf):
            if count("runs") == 3:
                kill()
            ttnn_perf.record("latency", [2.0] * 3, unit="ms")
        """,
    )
    ran = run(project, *CONFIRMED)
    assert "could not be confirmed: confirm pass 2: its worker was killed" in ran.text
    metric = entry_of(the_record(project), "test_slow")["metrics"]["latency"]
    assert metric["confirmations"] == [[2.0] * 3, []]
    assert ran.code == 1


def test_a_baseline_that_cannot_be_confirmed_is_not_stored(project: Project) -> None:
    write_tests(
        project,
        """
        from steps import count, kill

        def test_new(ttnn_perf):
            if count("runs") == 3:
                kill()
            ttnn_perf.record("latency", [2.0] * 3, unit="ms")
        """,
    )
    ran = run(project, *CONFIRMED, "--ttnn-perf-update=new")
    assert "could not be confirmed: confirm pass 2: its worker was killed" in ran.text
    assert (counts_of(ran), ran.code) == ("1 failed", 1)
    assert not (project.path / "baselines").exists()


def test_a_worker_that_cannot_be_started_again_fails_the_suspects_by_name(
    project: Project,
) -> None:
    store(project, "test_slow")
    write_tests(
        project,
        """
        from pathlib import Path
        import shutil

        def test_slow(ttnn_perf):
            ttnn_perf.record("latency", [2.0] * 3, unit="ms")
            (folder,) = Path(".ttnn_perf/passes").iterdir()
            shutil.rmtree(folder)
            folder.write_text("in the way")
        """,
    )
    ran = run(project, *CONFIRMED)
    found = f"[Errno 20] Not a directory: '{LOGS}/2-confirm'"
    why = f"its worker could not be started: {found}; log: {LOGS}"
    assert _why(ran, "test_slow", project) == why
    assert outcome_of(the_record(project), "test_slow") == "NO_DATA"
    assert ran.code == 1
