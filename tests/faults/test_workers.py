"""What makes a process a worker, and observations that arrive damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.detect import read_run
from tests.behaviour.model import counts_of, failure_of
from tests.faults.refusals import PYTEST_USAGE, assert_no_traceback, assert_refused
from tests.faults.workers import outcome_of, run, the_record, write_tests
from tests.harness.project import run_command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

MODEL = """
    def test_model(ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")
"""
ASSIGNMENT = {
    "kind": "wall",
    "folder": "somewhere",
    "tests": None,
    "first": True,
    "cwd_on_path": True,
}
_NOT_OPEN = "its channel {} is not open; unset TTNN_PERF_ASSIGNMENT, which only a worker is given"


def _with(**members: object) -> str:
    return json.dumps({**ASSIGNMENT, **members})


@pytest.mark.parametrize("variable", ["TTNN_PERF_ASSIGNMENT", "TTNN_PERF_SHARE"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, ": cannot read: No such file or directory"),
        ("", ":1: the file is empty"),
        (json.dumps(ASSIGNMENT)[:40], ":1: not valid JSON: "),
        (_with(kind="dance"), ":1: ['kind']: expected one of "),
        (_with(tests=[1]), ":1: ['tests'][0]: expected a string, found 1"),
    ],
    ids=["missing", "empty", "cut", "another kind", "another type"],
)
def test_an_assignment_that_cannot_be_read_is_refused_in_one_sentence(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    content: str | None,
    problem: str,
) -> None:
    project.write(test_model=MODEL)
    file = project.path / "assignment.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv(variable, str(file))
    ran = project.pytest("--ttnn-perf")
    assert_refused(ran, code=PYTEST_USAGE, says=(f"{file}{problem}",))


@pytest.mark.parametrize("descriptor", ["999", str(10**15), "1", "", "x"])
def test_an_assignment_of_another_process_is_refused_in_one_sentence(
    project: Project, monkeypatch: pytest.MonkeyPatch, descriptor: str
) -> None:
    # Left in the environment of a shell, say. Descriptor 1 is open, and no channel.
    project.write(test_model=MODEL)
    file = project.path / "assignment.json"
    file.write_text(json.dumps(ASSIGNMENT))
    monkeypatch.setenv("TTNN_PERF_CHANNEL", descriptor)
    monkeypatch.setenv("TTNN_PERF_ASSIGNMENT", str(file))
    ran = project.pytest_process("--ttnn-perf")
    assert_refused(ran, code=PYTEST_USAGE, says=(f"{file}: {_NOT_OPEN.format(descriptor)}",))


def test_without_the_gate_nobody_is_a_worker(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(test_model=MODEL)
    monkeypatch.setenv("TTNN_PERF_ASSIGNMENT", "no such file")
    assert counts_of(project.pytest()) == "1 passed"


def test_a_pytest_that_a_test_starts_is_not_taken_for_a_worker(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TTNN_PERF_CORPUS", raising=False)  # of these tests, where somebody has one
    inner = project.path / "inner"
    inner.mkdir()
    (inner / "pytest.ini").write_text("[pytest]")
    (inner / "test_inner.py").write_text(
        "def test_inner(ttnn_perf): ttnn_perf.record('latency', 1.0, unit='ms')"
    )
    write_tests(
        project,
        """
        import os, subprocess, sys, pytest

        GATED = ["--ttnn-perf", "--ttnn-perf-missing=warn", "--ttnn-perf-confirm=0"]

        @pytest.mark.parametrize("options", [[], GATED], ids=["plain", "gated"])
        def test_outer(ttnn_perf, options):
            ours = {name for name in os.environ if name.startswith("TTNN_PERF_")}
            # The first stands in for the host in these tests, the other is for conftest files.
            assert ours == {"TTNN_PERF_HOST", "TTNN_PERF_ROLE"}
            command = [sys.executable, "-m", "pytest", *options]
            done = subprocess.run(command, cwd="inner", capture_output=True, text=True)
            assert "1 passed in " in done.stdout
            assert done.returncode == 0
            ttnn_perf.record("latency", 1.0, unit="ms")

        def test_in_this_process(ttnn_perf, monkeypatch):
            monkeypatch.chdir("inner")
            assert pytest.main(GATED) == 0
            assert os.environ["TTNN_PERF_ROLE"] == "worker"
            ttnn_perf.record("latency", 1.0, unit="ms")
        """,
    )
    ran = run(project, "test_model.py")
    assert (counts_of(ran), ran.code) == ("3 passed", 0)
    names = {name.partition("::")[0] for name in the_record(project)["tests"]}
    assert names == {"test_model.py"}
    # Each gated run inside is one of its own.
    records = [json.loads(file.read_text()) for file in inner.glob(".ttnn_perf/runs/*.json")]
    assert [list(record["tests"]) for record in records] == [["test_inner.py::test_inner"]] * 2


#: What a conftest puts in the place of an observation, and what is said of it.
DAMAGE = {
    "emptied": ("{}", "['metrics']: expected a value, found nothing: the field is missing"),
    "another type": ('{"metrics": []}', "['metrics']: expected an object, found a list of 0"),
    "no object": ("[7]", "the document: expected an object, found a list of 1"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_observation_that_arrives_damaged_is_no_data(project: Project, damage: str) -> None:
    observation, problem = DAMAGE[damage]
    write_tests(
        project,
        MODEL + "\n    def test_other(ttnn_perf):\n        ttnn_perf.record('n', 1, unit='ms')",
        conftest=f"""
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item):
            report = yield
            if report.when == "call" and item.name == "test_model":
                report.ttnn_perf = {observation}
            return report
        """,
    )
    ran = run(project)
    said = "NO_DATA: the test's observation could not be judged: "
    assert failure_of(ran, "test_model") == said + problem
    assert (counts_of(ran), ran.code) == ("1 failed, 1 passed", 1)
    assert_no_traceback(ran)
    # Nor does it pass where the record is judged.
    assert outcome_of(the_record(project), "test_model") == "NO_DATA"
    (project.path / "baselines").mkdir()
    (record,) = project.path.glob(".ttnn_perf/runs/*.json")
    assert run_command("gate", record, "--missing=ignore").code == 1


def test_a_journal_with_an_observation_that_arrived_damaged_can_be_read(project: Project) -> None:
    write_tests(
        project,
        MODEL + "\n    def test_dies():\n        import os; os.kill(int(os.environ['LEAD']), 9)",
        conftest="""
        import os, pytest

        os.environ.setdefault("LEAD", str(os.getpid()))

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item):
            report = yield
            if report.when == "call":
                report.ttnn_perf = {}
            return report
        """,
    )
    gated = ("--ttnn-perf", "--ttnn-perf-missing=warn", "--ttnn-perf-isolate=process")
    assert project.pytest_process(*gated).code == -9
    (journal,) = project.path.glob(".ttnn_perf/runs/*.jsonl")
    assert _names(journal) == ["test_model.py::test_model"]


def _names(journal: Path) -> list[str]:
    return list(read_run(journal).tests)
