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

from tests.behaviour.model import entry_of, outcomes
from tests.behaviour.turns import id_of, latencies, write_turns

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

TWO = ("calibrate", "--sessions", "2")


def latency(project: Project, name: str) -> Any:
    """Return the stored baseline of a test's latency."""
    return project.stored()[f"test_model[{name}]"]["metrics"]["latency"]


def test_sessions_are_stored_one_by_one_and_judge_what_follows(project: Project) -> None:
    write_turns(project, a=latencies(10, 10.2, 12))

    ran = project.cli(*TWO, "--write", "test_model.py")

    assert ran.code == 0
    assert "1 test, 2 sessions each" in ran.text.splitlines()
    assert ran.text.splitlines()[-1] == "wrote baselines/host-ARCH/test_model.json"
    stored = project.stored()["test_model[a]"]
    assert stored["metrics"]["latency"]["sessions"] == [[10, 0, 1], [10.2, 0, 1]]
    assert stored["accepted"]["reason"] == "calibrated with 2 sessions"
    assert "python" in stored["accepted"]["environment"]
    assert project.pytest("--ttnn-perf").code == 1
    assert outcomes(project, id_of("a")) == {"latency": "REGRESSED"}
    sentence = entry_of(project, id_of("a"))["verdicts"]["latency"]["sentence"]
    assert "12.00 ms, baseline 10.10 ms: 18.8 % slower" in sentence
    assert "against 2 sessions" in sentence


def test_what_is_worse_than_its_baseline_is_stored_for_a_reason_only(project: Project) -> None:
    """Or a regression could be calibrated away; the test beside it is stored all the same."""
    write_turns(project, a=latencies(10), b=latencies(10))
    project.pytest("--ttnn-perf-update=new")
    write_turns(project, a=latencies(19.9, 20.1), b=latencies(10))
    before = latency(project, "a")

    refused = project.cli(*TWO, "--write")

    assert refused.code == 1
    assert re.search(
        r"^not written test_model\.py::test_model\[a\]: latency 20\.00 ms, baseline 10\.00 ms: "
        r'100\.0 % slower, .*; accept it with --reason "why"$',
        refused.text,
        re.M,
    )
    assert latency(project, "a") == before
    assert latency(project, "b")["sessions"] == [[10, 0, 1], [10, 0, 1]]
    accepted = project.cli(*TWO, "--write", "--reason", "more layers", id_of("a"))
    assert accepted.code == 0
    assert latency(project, "a")["sessions"] == [[20.1, 0, 1], [20.1, 0, 1]]
    assert project.stored()["test_model[a]"]["accepted"]["reason"] == "more layers"


@pytest.mark.parametrize("sessions", ["1", "x"])
def test_number_of_sessions_that_is_none_is_refused(project: Project, sessions: str) -> None:
    ran = project.cli("calibrate", f"--sessions={sessions}")
    assert ran.code == 2
    assert ran.errors.splitlines()[-1].endswith(
        f"argument --sessions: expected a whole number from 2 to 20, found {sessions!r}"
    )


def test_words_that_are_not_its_own_go_to_pytest_in_their_order(project: Project) -> None:
    write_turns(project, a=latencies(10), b=latencies(10))
    project.write(
        conftest="""
            import json

            def pytest_configure(config):
                with open("words.jsonl", "a") as file:
                    file.write(json.dumps(list(config.invocation_params.args)) + "\\n")
        """
    )
    words = ["-k", "model[a] or none", "-m", "not slow", "--tb", "no", "-x", "--", "test_model.py"]

    own = ("--sessions", "2", "--format", "json")
    ran = project.cli("calibrate", *words[:2], *own[:2], *words[2:4], *own[2:], *words[4:])

    assert ran.code == 0
    found = json.loads(ran.text)["tests"]
    assert [(each["test"], each["sessions"]) for each in found] == [(id_of("a"), 2)]
    assert not (project.path / "baselines").exists(), "nothing is stored unasked"
    told = [json.loads(line) for line in (project.path / "words.jsonl").read_text().splitlines()]
    assert len(told) == 2
    for arguments in told:
        assert arguments[-len(words) :] == words
    assert bars_in(ran.errors) == [
        "[############------------] session 1 of 2, test 1 of 1",
        "[########################] session 2 of 2, test 1 of 1",
    ]


def bars_in(text: str) -> list[str]:
    """Return lines of progress without the time that is left, which is anyone's guess."""
    return [re.sub(r", about .* left *$", "", line) for line in re.split(r"[\r\n]+", text) if line]


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
    return stdout.decode(), shown.decode()


def test_progress_on_a_terminal_is_one_line_that_is_rewritten(project: Project) -> None:
    write_turns(project, a=latencies(10))

    stdout, shown = on_a_terminal(project.path, *TWO, "--format", "csv")

    assert len(stdout.splitlines()) == 2
    assert shown.endswith("\r\x1b[2K"), "nothing of it stays"
    assert "\n" not in shown
    assert bars_in(shown.replace("\x1b[2K", "")) == [
        "[------------------------] session 1 of 2, test 0 of 1",
        "[############------------] session 1 of 2, test 1 of 1",
        "[############------------] session 2 of 2, test 0 of 1",
        "[########################] session 2 of 2, test 1 of 1",
    ]


def test_what_is_not_gated_is_told_and_not_stored(project: Project) -> None:
    project.write(test_plain="def test_plain(): pass")

    ran = project.cli(*TWO, "--write", "--ttnn-perf-all")

    assert ran.code == 1
    assert ran.text.splitlines()[-2:] == [
        "nothing to calibrate in test_plain.py::test_plain: what it records is not gated",
        "nothing was written",
    ]


def test_sessions_are_stored_where_pytest_looks_for_baselines(project: Project) -> None:
    """Its root folder is not where the user stands."""
    (project.path / "pytest.ini").write_text("[pytest]\n")
    write_turns(project, a=latencies(10, 10.3))
    folder = project.path / "models"
    folder.mkdir()
    for name in ("test_model.py", "turns.json"):
        (project.path / name).rename(folder / name)

    command = [sys.executable, "-m", "pytest_ttnn_perf.cli.main", *TWO, "--write"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr

    (file,) = project.path.rglob("test_model.json")
    assert str(file.relative_to(project.path).parent.parent.parent) == "baselines"
