"""What makes a process a worker, and what workers send: damaged, forged, odd or too much."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, failure_of
from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import outcome_of, run, the_record, told, write_tests

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project

MODEL = """
    def test_model(ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")
"""


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

        GATED = ["--ttnn-perf", "--ttnn-perf-missing=warn", "--ttnn-perf-isolate=inline"]

        def test_outer(ttnn_perf):
            ours = {name for name in os.environ if name.startswith("TTNN_PERF_")}
            # The first stands in for the host in these tests, the other is for conftest files.
            assert ours == {"TTNN_PERF_HOST", "TTNN_PERF_ROLE"}
            command = [sys.executable, "-m", "pytest", *GATED]
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
    assert (counts_of(ran), ran.code) == ("2 passed", 0)
    names = {name.partition("::")[0] for name in the_record(project)["tests"]}
    assert names == {"test_model.py"}
    # Each gated run inside is one of its own.
    records = [json.loads(file.read_text()) for file in inner.glob(".ttnn_perf/runs/*.json")]
    assert [list(record["tests"]) for record in records] == [["test_inner.py::test_inner"]] * 2


def test_an_observation_that_arrives_damaged_is_no_data(project: Project) -> None:
    write_tests(
        project,
        MODEL + "\n    def test_other(ttnn_perf):\n        ttnn_perf.record('n', 1, unit='ms')",
        conftest="""
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item):
            report = yield
            if report.when == "call" and item.name == "test_model":
                report.ttnn_perf = {"metrics": []}
            return report
        """,
    )
    ran = run(project)
    said = "NO_DATA: the test's observation could not be judged: "
    problem = "['metrics']: expected an object, found a list of 0"
    assert failure_of(ran, "test_model") == said + problem
    assert (counts_of(ran), ran.code) == ("1 failed, 1 passed", 1)
    assert_no_traceback(ran)
    # Nor does it pass where the record is judged.
    assert outcome_of(the_record(project), "test_model") == "NO_DATA"
    (project.path / "baselines").mkdir()
    (record,) = project.path.glob(".ttnn_perf/runs/*.json")
    assert project.cli("gate", str(record), "--missing=ignore").code == 1


#: Tests that reach for the channel of their worker, between two that do not.
REACHING = """
    import pytest

    COLLECTED = {"$report_type": "CollectReport", "nodeid": "a.py", "outcome": "failed"}
    REPORT = {
        "nodeid": "test_model.py::test_unread",
        "location": ["test_model.py", 1, "x"],
        "$report_type": "TestReport",
    }

    @pytest.fixture(autouse=True)
    def link(ttnn_perf, request):
        ttnn_perf.record("latency", 1.0, unit="ms")
        return request.config.pluginmanager.get_plugin("ttnn_perf_stream").link

    def test_before(): pass
    def test_closed(link): link.channel._socket.close()
    def test_unread(link): link.send("reported", report=REPORT)

    def test_too_many(link):
        link.send("finished", test="a", location=["a.py", 1, "b"], apart=False)
        link.send("reported", report=COLLECTED)
        link.send("opened")

    def test_after(): pass
"""


def test_a_damaged_stream_costs_the_test_that_was_running(project: Project) -> None:
    write_tests(project, REACHING)
    ran = run(project)
    damaged = ("ended with exit code 2", "sent a message that cannot be read, killed")
    for number, (name, how) in enumerate(zip(("closed", "unread"), damaged, strict=True), start=1):
        said = told(failure_of(ran, f"test_{name}"), project).splitlines()[0]
        log = f"HERE/.ttnn_perf/passes/RUN-ID/{number}-wall/worker.log"
        assert said == f"its worker {how}; log: {log}"
        assert outcome_of(the_record(project), f"test_{name}") == "NO_DATA"
    # Messages too many change nothing.
    assert (counts_of(ran), ran.code) == ("2 failed, 3 passed", 1)
    assert_no_traceback(ran)


def test_text_that_is_no_text_comes_through(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:backslashreplace")
    write_tests(
        project,
        r"""
        import os, sys, pytest

        @pytest.mark.parametrize("x", [1, 2], ids=["caf\u00e9", "lone\udcff"])
        def test_ids(ttnn_perf, x):
            os.write(1, b"bytes \xff\xfe\n")
            print("surrogate \udc80", file=open(1, "w", errors="surrogateescape", closefd=False))
            ttnn_perf.record("latency", 1.0, unit="ms")
            assert x == 0, "message \udcff \u2028 \x00"
        """,
    )
    # pytest's own cache cannot hold such an id.
    ini = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"
    ran = run(project, "-o", ini, "--junitxml=junit.xml", "-pno:cacheprovider")
    assert_no_traceback(ran)
    assert (counts_of(ran), ran.code) == ("2 failed", 1)
    assert "bytes \ufffd\ufffd" in ran.text
    names = [json.dumps(name) for name in the_record(project)["tests"]]
    assert r'"test_model.py::test_ids[caf\u00e9]"' in names
    assert r'"test_model.py::test_ids[lone\udcff]"' in names
