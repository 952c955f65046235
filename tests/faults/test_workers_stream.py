"""What a worker says, damaged or cut or beyond all measure: told by name, and nothing waits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, failure_of
from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import CONFIRMED, outcome_of, run, store, the_record, told, write_tests

if TYPE_CHECKING:
    from tests.harness.project import Project

#: A test that reaches for the channel of its worker, between two that do not.
REACHING = """
    import os, time

    def test_before(ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")

    def test_reaches(ttnn_perf, request):
        ttnn_perf.record("latency", 1.0, unit="ms")
        stream = request.config.pluginmanager.get_plugin("ttnn_perf_stream")
        channel = stream.link.channel._socket
        {act}

    def test_after(ttnn_perf):
        ttnn_perf.record("latency", 1.0, unit="ms")
"""
#: Lets any text be a test's id.
_UNESCAPED = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"
#: What a test does to the channel, and how its worker is said to have ended.
DAMAGE = {
    "no JSON": (
        r'channel.sendall(b"no JSON\n"); time.sleep(1000)',
        "sent a message that cannot be read, killed",
    ),
    "cut": (
        r"""channel.sendall(b'{"kind": "en'); os.kill(os.getpid(), 9)""",
        "was killed by SIGKILL, in the middle of a message",
    ),
    "closed": ("channel.close()", "ended with exit code 2"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_stream_costs_the_test_that_was_running(project: Project, damage: str) -> None:
    act, how = DAMAGE[damage]
    write_tests(project, REACHING.format(act=act))
    ran = run(project)
    said = told(failure_of(ran, "test_reaches"), project).splitlines()[0]
    assert said == f"its worker {how}; log: HERE/.ttnn_perf/passes/RUN-ID/1-wall/worker.log"
    assert (counts_of(ran), ran.code) == ("1 failed, 2 passed", 1)
    assert outcome_of(the_record(project), "test_reaches") == "NO_DATA"
    assert_no_traceback(ran)


PLACE = ["test_model.py", 10**30, "x"]
REPORT = {"nodeid": "test_model.py::test_reaches", "location": ["test_model.py", 1, "x"]}
#: Messages that are JSON, and not what a worker says.
FORGED = {
    "no place": {"kind": "started", "test": "a.py::b", "location": []},
    "a line beyond any file": {"kind": "started", "test": "a.py::b", "location": PLACE},
    "the end of no place": {"kind": "finished", "test": "a.py::b", "location": [1], "apart": False},
    "no report": {"kind": "reported", "report": REPORT},
    "a report without its parts": {
        "kind": "reported", "report": {**REPORT, "$report_type": "TestReport"},
    },
    "a report from a line beyond any file": {
        "kind": "reported",
        "report": {
            **REPORT, "location": PLACE, "$report_type": "TestReport", "keywords": {},
            "outcome": "passed", "longrepr": None, "when": "call", "sections": [],
        },
    },
    "a warning in a line beyond any file": {
        "kind": "warned", "text": "x", "category": "UserWarning", "filename": "a.py",
        "line": 10**30, "when": "runtest", "test": "a.py::b", "location": None,
    },
    "a warning of no class": {
        "kind": "warned", "text": "x", "category": "a\0b", "filename": "a.py",
        "line": 1, "when": "runtest", "test": "a.py::b", "location": None,
    },
    "an end like no other": {"kind": "ended", "status": 10**30},
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED)
def test_a_message_that_is_none_costs_the_test_that_was_running(
    project: Project, forged: str
) -> None:
    write_tests(project, REACHING.format(act=f"stream.link.channel.send({FORGED[forged]!r})"))
    ran = run(project)
    said = told(failure_of(ran, "test_reaches"), project).splitlines()[0]
    assert said.startswith("its worker sent a message that cannot be read, killed; log: ")
    assert (counts_of(ran), ran.code) == ("1 failed, 2 passed", 1)
    assert_no_traceback(ran)


EXTRA = (
    {"kind": "finished", "test": "a.py::b", "location": ["a.py", 1, "b"], "apart": False},
    {
        "kind": "reported",
        "report": {"$report_type": "CollectReport", "nodeid": "a.py", "outcome": "failed"},
    },
    {"kind": "opened"},
)


@pytest.mark.parametrize("extra", EXTRA, ids=lambda extra: str(extra["kind"]))
def test_a_message_too_many_changes_nothing(project: Project, extra: dict[str, object]) -> None:
    write_tests(project, REACHING.format(act=f"stream.link.channel.send({extra!r})"))
    ran = run(project)
    assert (counts_of(ran), ran.code) == ("3 passed", 0)
    assert_no_traceback(ran)


@pytest.mark.parametrize("place", [f"a.py:{10**30}", "a.py:2000000000", "a\0.py:3"])
def test_an_interruption_in_no_line_is_one_all_the_same(project: Project, place: str) -> None:
    text, cause = f"KeyboardInterrupt in {place}", "ended"
    message = {"kind": "stopped", "cause": cause, "text": text, "code": None}
    write_tests(project, REACHING.format(act=f"stream.link.channel.send({message!r})"))
    ran = run(project)
    assert ran.code == pytest.ExitCode.INTERRUPTED
    assert "INTERNALERROR" not in ran.text + ran.errors


def test_a_message_of_many_megabytes_is_heard(project: Project) -> None:
    write_tests(
        project,
        """
        def test_talks(ttnn_perf, request):
            ttnn_perf.record("latency", 1.0, unit="ms")
            print(("y" * 79 + "\\n") * 130_000, end="")
            request.node.user_properties.append(("size", "z" * 10_000_000))
            assert False, "for its output to be shown"
        """,
    )
    ran = run(project, "--junitxml=junit.xml")
    assert ran.text.count("y" * 79) == 130_000
    assert "z" * 10_000_000 in (project.path / "junit.xml").read_text()
    assert (counts_of(ran), ran.code) == ("1 failed", 1)


def test_text_that_is_no_text_comes_through(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:backslashreplace")
    store(project, "test_known")
    write_tests(
        project,
        r"""
        import os, sys, pytest

        def test_known(ttnn_perf):
            ttnn_perf.record("latency", [2.0] * 3, unit="ms")

        @pytest.mark.parametrize("x", [1, 2], ids=["caf\u00e9", "lone\udcff"])
        def test_ids(ttnn_perf, x):
            os.write(1, b"bytes \xff\xfe\n")
            print("surrogate \udc80", file=open(1, "w", errors="surrogateescape", closefd=False))
            ttnn_perf.record("latency", 1.0, unit="ms")
            assert x == 0, "message \udcff \u2028 \x00"
        """,
    )
    # pytest's own cache cannot hold such an id.
    ran = run(project, *CONFIRMED, "-o", _UNESCAPED, "--junitxml=junit.xml", "-pno:cacheprovider")
    assert_no_traceback(ran)
    assert (counts_of(ran), ran.code) == ("3 failed", 1)
    assert "confirm passes: 2.000 ms, 2.000 ms" in failure_of(ran, "test_known")
    assert "bytes \ufffd\ufffd" in ran.text
    names = [json.dumps(name) for name in the_record(project)["tests"]]
    assert r'"test_model.py::test_ids[caf\u00e9]"' in names
    assert r'"test_model.py::test_ids[lone\udcff]"' in names


def test_what_a_worker_prints_beyond_the_letters_of_our_terminal_is_shown_escaped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    write_tests(
        project,
        r"""
        import os

        def test_prints(ttnn_perf):
            os.write(1, "<\u00e9 \u4e16 \u2028>\n".encode())
            os.write(1, b"<\xff>\n")
            ttnn_perf.record("latency", 1.0, unit="ms")
        """,
    )
    ran = run(project, "-s")
    assert r"<\xe9 \u4e16 \u2028>" in ran.text
    assert r"<\ufffd>" in ran.text
    assert (counts_of(ran), ran.code) == ("1 passed", 0)


def test_what_json_cannot_hold_costs_nothing(project: Project) -> None:
    write_tests(
        project,
        """
        def test_properties(ttnn_perf, request):
            ttnn_perf.record("latency", 1.0, unit="ms")
            request.node.user_properties.append(("shapes", {(1, 2): {3}}))
        """,
        conftest="""
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item):
            report = yield
            report.item = item
            report.around = {item: [report]}
            return report
        """,
    )
    ran = run(project, "--junitxml=junit.xml")
    assert (counts_of(ran), ran.code) == ("1 passed", 0)
    assert '<property name="shapes" ' in (project.path / "junit.xml").read_text()


def test_phases_that_passed_alike_are_reported_as_without_the_gate(project: Project) -> None:
    conftest = """
        import json, os
        import pytest

        lead = os.environ.setdefault("LEAD", str(os.getpid()))

        def pytest_runtest_logreport(report):
            if lead == str(os.getpid()):
                seen = [report.nodeid, report.when, report.outcome, report.duration >= 0]
                seen += [sorted(report.keywords), list(report.location), report.capstdout]
                seen += [report.user_properties, getattr(report, "extra", None)]
                with open("reports", "a") as file:
                    file.write(json.dumps(seen) + "\\n")

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if item.name == "test_adds" and call.when == "teardown":
                report.extra = "added"
            return report
    """
    source = """
        import pytest

        def test_passes(): pass
        def test_adds(): pass
        def test_prints(): print("x")
        def test_fails(): assert False
        def test_skips(): pytest.skip("not now")

        @pytest.fixture
        def marked(request):
            request.node.add_marker("late")
            request.node.user_properties.append(("p", "v"))

        def test_marked(marked): pass
    """
    write_tests(project, source, conftest=conftest)
    file, seen = project.path / "reports", []
    for arguments in ((), ("--ttnn-perf", "--ttnn-perf-isolate=process")):
        project.pytest_process("-p", "no:warnings", "-o", "markers=late", *arguments)
        seen.append([json.loads(line) for line in file.read_text().splitlines()])
        file.unlink()
    assert len(seen[0]) == 18
    assert seen[1] == seen[0]
