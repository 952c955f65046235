"""``ttnn-perf calibrate``: sessions in fresh processes, what they tell, and what is stored."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.experiments.rounds import Sessions
from pytest_ttnn_perf.plugin.wire import Message
from tests.behaviour.model import entry_of, metric, outcomes
from tests.behaviour.turns import id_of, latencies, write_turns
from tests.harness.golden import assert_golden
from tests.harness.project import clean

if TYPE_CHECKING:
    from pathlib import Path

    from tests.behaviour.turns import Turn
    from tests.harness.project import Project, Ran

TWO = ("calibrate", "--sessions", "2")


def sessions_of(project: Project, name: str) -> Any:
    """Return the stored sessions of a test's latency."""
    return project.stored()[f"test_model[{name}]"]["metrics"]["latency"]["sessions"]


def rows_of(ran: Ran) -> list[str]:
    """Return the names of the tests in the table."""
    return re.findall(r"^test_model\.py::test_model\[(\w+)\] ", ran.text, re.M)


def bars_in(text: str) -> list[str]:
    """Return lines of progress without the time that is left, which is anyone's guess."""
    return [re.sub(r", about .* left *$", "", line) for line in re.split(r"[\r\n]+", text) if line]


# In processes.


def on_a_terminal(folder: Path, *arguments: str) -> tuple[str, str]:
    """Run ``ttnn-perf`` with stderr on a terminal; return stdout and what the terminal was sent."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest_ttnn_perf.cli.main", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    stdout, _ = process.communicate(timeout=300)
    return clean(stdout.decode()), shown.decode()


def decoding(latency: float) -> Turn:
    samples = [latency * factor for factor in (0.99, 1.0, 1.01, 1.02)]
    rates = [1000 / sample for sample in samples]
    rate = metric(*rates, unit="tok/s", kind="throughput", better="higher")
    return {"latency": metric(*samples), "rate": rate}


def test_table_progress_on_a_terminal_and_words_for_pytest(project: Project) -> None:
    write_turns(
        project,
        decode=[decoding(10.0), decoding(10.3)],
        prefill=[{"latency": metric(2.0), "ops": metric(7, unit="", kind="count")}],
        other=latencies(1),
    )
    project.write(
        conftest="""
            import json

            def pytest_configure(config):
                with open("words.jsonl", "a") as file:
                    file.write(json.dumps(list(config.invocation_params.args)) + "\\n")
        """
    )
    words = ["-k", "model and not other", "-m", "not slow", "--tb", "no", "-x", "--", "."]

    own = ("--sessions", "2", "--format", "table")
    stdout, shown = on_a_terminal(
        project.path, "calibrate", *words[:2], *own[:2], *words[2:4], *own[2:], *words[4:]
    )

    assert_golden("calibrate_table", stdout)
    assert not (project.path / "baselines").exists(), "nothing is stored unasked"
    told = [json.loads(line) for line in (project.path / "words.jsonl").read_text().splitlines()]
    assert [arguments[-len(words) :] for arguments in told] == [words] * 2
    assert shown.endswith("\r\x1b[2K"), "nothing of it stays"
    assert "\n" not in shown, "one line is rewritten"
    assert bars_in(shown.replace("\x1b[2K", "")) == [
        "session 1 of 2, test 0 of 2",
        "session 1 of 2, test 1 of 2",
        "session 1 of 2, test 2 of 2",
        "session 2 of 2, test 0 of 2",
        "session 2 of 2, test 1 of 2",
        "session 2 of 2, test 2 of 2",
    ]


def test_sessions_are_stored_where_pytest_looks_and_judge_what_follows(project: Project) -> None:
    """Its root folder is not where the user stands."""
    (project.path / "pytest.ini").write_text("[pytest]\n")
    write_turns(project, a=latencies(10, 10.2, 12))
    folder = project.path / "models"
    folder.mkdir()
    for name in ("test_model.py", "turns.json"):
        (project.path / name).rename(folder / name)

    command = [sys.executable, "-m", "pytest_ttnn_perf.cli.main", *TWO, "--write"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "1 test, 2 sessions each" in done.stdout.splitlines()
    last = clean(done.stdout.splitlines()[-1])
    assert last == "wrote ../baselines/host-ARCH/models/test_model.json"
    stored = project.stored("models/test_model.json")["test_model[a]"]
    assert stored["metrics"]["latency"]["sessions"] == [[10, 0, 1], [10.2, 0, 1]]
    assert stored["accepted"]["reason"] == "calibrated with 2 sessions"
    assert "python" in stored["accepted"]["environment"]
    assert project.pytest("--ttnn-perf").code == 1
    test = f"models/{id_of('a')}"
    assert outcomes(project, test) == {"latency": "REGRESSED"}
    sentence = entry_of(project, test)["verdicts"]["latency"]["sentence"]
    assert "12.00 ms, baseline 10.10 ms: 18.8 % slower" in sentence
    assert "against 2 sessions" in sentence


def test_tests_that_went_wrong_in_a_session_are_named_and_not_stored(project: Project) -> None:
    good = latencies(10)
    accuracy = "ttnn_perf.check_accuracy(top1={}, at_least=0.9)".format
    write_turns(
        project,
        good=good,
        raises=[*good, "raise RuntimeError('no device')"],
        early=["raise RuntimeError('no device')", *good],
        dies=[*good, "os._exit(3)"],
        skips=[*good, "pytest.skip('no device')"],
        wrong=[accuracy(0.95), accuracy(0.5)],
        counts=[{"ops": metric(ops, unit="", kind="count")} for ops in (7, 8)],
        moved=[f"ttnn_perf.facts(batch={n}); ttnn_perf.record('t', 5, unit='ms')" for n in (1, 2)],
        last=good,
    )

    ran = project.cli(*TWO, "--write")

    assert ran.code == 1
    assert rows_of(ran) == ["good", "last"]
    failures = dict(
        re.findall(r"^failed test_model\.py::test_model\[(\w+)\]: (.*)$", ran.text, re.M)
    )
    assert re.fullmatch(
        r"session 2: its worker ended with exit code 3; log: .*/2-calibrate/worker\.log",
        failures.pop("dies"),
    )
    assert failures == {
        "raises": "session 2: RuntimeError: no device",
        "early": "session 1: RuntimeError: no device",
        "skips": "session 2: the test did not run again",
        "wrong": "session 2: top1 0.5 is below its limit 0.9",
        "counts": "session 2: not as in session 1: ops 8, baseline 7: 14.3 % higher, limit no "
        "change (1 sample against 1 session)",
        "moved": "session 2: not as in session 1: t 5.000 ms was measured in another "
        "configuration: batch is 2, in the baseline 1",
    }
    assert list(project.stored()) == ["test_model[good]", "test_model[last]"]
    assert "2 tests, 2 sessions each" in ran.text.splitlines()
    assert (project.path / "early.turn").read_text() == "1", "it can have no result any more"


def test_ctrl_c_keeps_what_was_measured_and_stores_it(project: Project) -> None:
    interrupt = "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"
    write_turns(project, a=latencies(10, 10.1), b=[*latencies(20), interrupt])

    ran = project.cli_process("calibrate", "--sessions", "20", "--write")

    assert ran.code == 1
    assert "Traceback" not in ran.errors
    assert rows_of(ran) == ["a", "b"]
    assert "interrupted: 2 tests, at least 1 of 20 sessions each" in ran.text.splitlines()
    assert sessions_of(project, "a") == [[10, 0, 1], [10.1, 0, 1]]
    assert sessions_of(project, "b") == [[20, 0, 1]]


def test_a_session_that_a_test_ends_is_refused_with_the_reason(project: Project) -> None:
    project.write(test_model="import pytest\ndef test_model(): pytest.exit('had enough')")
    ran = project.cli(*TWO, "--write")
    assert (ran.code, ran.text) == (2, "")
    expected = "ttnn-perf: a test or a plugin ended the session: had enough"
    assert ran.errors.splitlines()[-1] == expected
    assert not (project.path / "baselines").exists()


# In sessions that are told and not run.


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Observation]]:
    """Return what the sessions of calibrations are to measure, by test."""
    told: dict[str, list[Observation]] = {}

    def run_sessions(_workers: object, wanted: int, begin: Any, _progress: object) -> Sessions:
        about = {"confirm": None, "baselines": None, "tests": list(told)}
        begin(Message("collected", about))
        return Sessions(wanted, wanted, dict(told))

    monkeypatch.setattr("pytest_ttnn_perf.experiments.calibrate.run_sessions", run_sessions)
    return told


def timed(name: str, *sessions: float, gated: bool = True) -> list[Observation]:
    time = Metric("latency", "ms")
    return [
        Observation(id_of(name), {"latency": MetricObservation(time, (each,), gated=gated)})
        for each in sessions
    ]


def test_what_is_worse_than_its_baseline_is_stored_for_a_reason_only(
    project: Project, sessions: dict[str, list[Observation]]
) -> None:
    """Or a regression could be calibrated away; the test beside it is stored all the same."""
    sessions.update({id_of(name): timed(name, 10, 10) for name in "ab"})
    assert project.cli(*TWO, "--write").code == 0
    sessions[id_of("a")] = timed("a", 19.9, 20.1)
    sessions[id_of("b")] = timed("b", 9, 9)

    refused = project.cli(*TWO, "--write")

    assert refused.code == 1
    assert re.search(
        r"^not written test_model\.py::test_model\[a\]: latency 20\.00 ms, baseline 10\.00 ms: "
        r'100\.0 % slower, .*; accept it with --reason "why"$',
        refused.text,
        re.M,
    )
    assert sessions_of(project, "a") == [[10, 0, 1], [10, 0, 1]]
    assert sessions_of(project, "b") == [[9, 0, 1], [9, 0, 1]]
    assert project.cli(*TWO, "--write", "--reason", "more layers").code == 0
    assert sessions_of(project, "a") == [[19.9, 0, 1], [20.1, 0, 1]]
    assert project.stored()["test_model[a]"]["accepted"]["reason"] == "more layers"


def test_what_could_not_be_judged_is_told_and_not_stored(
    project: Project, sessions: dict[str, list[Observation]]
) -> None:
    sessions[id_of("wild")] = timed("wild", 30, 60, 30, 60)
    sessions[id_of("plain")] = timed("plain", 1, 1, gated=False)

    ran = project.cli("calibrate", "--sessions", "4", "--write")

    noisy = "latency is too noisy: noise alone reaches "
    assert ran.code == 1
    assert f"no gate would pass {id_of('wild')}: {noisy}" in ran.text
    assert f"not written {id_of('wild')}: {noisy}" in ran.text
    why = "what it records is not gated"
    assert f"nothing to calibrate in {id_of('plain')}: {why}" in ran.text
    assert not list(project.path.glob("baselines/*/*.json"))


def test_a_folder_that_cannot_be_written_is_refused_early_and_late_told_beside_the_table(
    project: Project, sessions: dict[str, list[Observation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions[id_of("a")] = timed("a", 10, 10)
    (project.path / "taken").write_text("a file")
    command = (*TWO, "--write", "--baselines", "taken")

    ran = project.cli(*command)
    assert (ran.code, ran.text) == (3, "")
    assert ran.errors == "ttnn-perf: taken: cannot write: Not a directory"

    # It became one while the sessions ran.
    monkeypatch.setattr("pytest_ttnn_perf.experiments.calibrate.check_writable", lambda _: None)
    ran = project.cli(*command)
    assert (ran.code, rows_of(ran)) == (1, ["a"])
    assert re.search(r"^not written: taken\S*: cannot write: \S", ran.text, re.M)


def test_what_cannot_be_meant_is_refused(
    project: Project, sessions: dict[str, list[Observation]]
) -> None:
    del sessions
    ran = project.cli(*TWO)
    nothing = "no test was measured: mark tests with @pytest.mark.ttnn_perf, or name others"
    assert (ran.code, ran.text, ran.errors) == (2, "", f"ttnn-perf: {nothing}")
    for number in ("1", "x"):
        ran = project.cli("calibrate", f"--sessions={number}")
        assert ran.code == 2
        assert ran.errors.splitlines()[-1].endswith(
            f"argument --sessions: expected a whole number from 2 to 20, found {number!r}"
        )
