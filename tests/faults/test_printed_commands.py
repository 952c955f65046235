"""A command that is printed for a test changes that test's baseline and no other, whatever its id.

The ids are those of a record that someone else has made; the commands are read by real shells.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.report.sentences import accept_command, place_of
from tests.harness.baselines import N150, Desk, ops, stored, times
from tests.harness.project import run_command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

BASH = shutil.which("bash")
IDS = [
    # options
    "--baselines=elsewhere", "-h", "--", "--update=all", "--ttnn-perf-update=all.py::t",
    # patterns, folders and words for several tests
    "*", "????????", "test_m.py::*", ".", "./", "..", "/", "", " ", "test_m.py",
    "test_m.py::test_a", "test_m.py::TestX",
    # records, one of which is there
    "x.json", "run.json", "x.jsonl",
    # what a shell makes something of
    "test_m.py::test_q['\"$(touch canary)`touch canary`]", "test_m.py::test_b[\\n\\x1b\\]",
    "test_m.py::test_n[a\nb]; touch canary\n", "test_m.py::test_i[!!]", "# test", "~", "$HOME",
    "; touch canary", "| touch canary", "a=b", "=ls",
    # what a terminal or a CI system makes something of
    "test_m.py::test_c[\x1b[31m]", "test_m.py::test_c[\\x1b[31m]", "test_m.py::test_t[\t\r7]",
    "test_m.py::test_d[\u202e]", "::error::x", "##[error]x ##vso[task]",
    # letters, halves of them and bytes that are none
    "test_m.py::test_e[👩‍🚀 漢字 é]", "test_m.py::test_h[\ud800]", "test_m.py::test_h[\udc80]",
]  # fmt: skip
OTHERS = ["test_m.py::test_a[8]", "test_m.py::TestX::test_y", "models/test_z.py::test_z", "a", "b",
          "elsewhere::t", "run", "x"]  # fmt: skip
#: Tells the words that each command gives, and runs nothing.
TELLING = "ttnn-perf() { printf '%s\\0' \"$@\"; printf 'END\\0'; }\n"

pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A folder with all these tests in one record and their baselines, and ``ttnn-perf``."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "ttnn-perf"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pytest_ttnn_perf.cli.main "$@"\n')
    command.chmod(0o755)
    for name in ("elsewhere", "models"):
        (tmp_path / name).mkdir()
    moved = [*IDS, *OTHERS]
    steady = [f"steady.py::test_{number}" for number in range(3 * len(moved))]  # no machine shifts
    BaselineStore(desk.root).amend_keys(
        {N150: {test: lambda _: stored(times(10.0, 10.1)) for test in (*moved, *steady)}}
    )
    tests = {test: [20.0, 20.1, 20.2] for test in moved}
    desk.record(tests={**tests, **{test: [10.0, 10.05, 10.1] for test in steady}})
    return desk


def in_shell(desk: Desk, text: str, shell: str = "bash") -> subprocess.CompletedProcess[bytes]:
    """Run what a user would paste."""
    path = f"{desk.path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [shell, "-c", text], cwd=desk.path, env=environment, capture_output=True, check=False
    )


def accepted(desk: Desk) -> set[str]:
    """Return the tests whose baseline is what the record says now."""
    return {test for test in [*IDS, *OTHERS] if 20.1 in desk.sessions(test)}


def test_the_printed_command_accepts_that_test_and_no_other(desk: Desk) -> None:
    commands = [accept_command(["run.json"], [test]) for test in IDS]
    assert all(command.isprintable() for command in commands)
    gated, refused = run_command("gate", "run.json").text, desk.run("accept", "run.json").text
    for command in commands:
        assert command in gated
        assert command in refused
    said = {
        shell: in_shell(desk, TELLING + "\n".join(commands), shell).stdout
        for shell in ("bash", "zsh")
        if shutil.which(shell)
    }
    given = [
        [os.fsdecode(word) for word in words.split(b"\0")[:-1]]
        for words in said["bash"].split(b"END\0")[:-1]
    ]
    assert set(said.values()) == {said["bash"]}
    assert not (desk.path / "canary").exists()
    assert len(given) == len(IDS)

    desk.record(tests={test: [20.0, 20.1, 20.2] for test in [*IDS, *OTHERS]})
    before = shutil.copytree(desk.root, desk.path / "before")
    for test, words in zip(IDS, given, strict=True):
        ran = run_command(*words)
        assert (ran.code, accepted(desk)) == (0, {test}), ran.errors
        shutil.rmtree(desk.root)
        shutil.copytree(before, desk.root)
    assert list((desk.path / "elsewhere").iterdir()) == []


def test_a_run_that_was_cut_short_is_accepted_by_name(desk: Desk) -> None:
    """Here ``ttnn-perf`` gets what the shell gives it, which need not be text."""
    hostile = "--update=all[\ud800]; touch canary"
    desk.record("cut.json", tests={hostile: [1.0, 1.0], "other": [1.0, 1.0]}, complete=False)
    command = desk.run("accept", "cut.json").errors.partition("by name: ")[2]
    assert command.startswith("ttnn-perf baseline accept cut.json -- ")
    done = in_shell(desk, command)
    assert done.returncode == 0, done.stderr
    assert desk.sessions(hostile) == [1.0]
    assert desk.find("other") is None
    assert not (desk.path / "canary").exists()


def test_a_record_that_looks_like_an_option(desk: Desk) -> None:
    (desk.path / "run.json").rename(desk.path / "--update=all.json")
    ran = run_command("gate", "./--update=all.json")
    command = accept_command(["--update=all.json"], ["a"])
    assert command.startswith("ttnn-perf baseline accept ./--update=all.json --reason ")
    assert command in ran.text


def test_words_before_the_dashes_are_patterns_and_an_empty_one_is_a_mistake(desk: Desk) -> None:
    words = ("accept", "run.json", "--update", "all", "--reason", "x")
    ran = desk.run(*words, "")
    assert (ran.code, accepted(desk)) == (2, set())
    assert "an empty word names no test in run.json" in ran.errors
    assert desk.run(*words, "models/*").code == 0
    assert accepted(desk) == {"models/test_z.py::test_z"}


def test_a_new_name_may_look_like_an_option(desk: Desk) -> None:
    desk.store("test_n.py::test_gone", stored(times(5.0), table=ops("Matmul", "Softmax")))
    assert run_command("baseline", "rename", "--", "test_n.py", "--key=x.py").code == 0
    assert desk.sessions("--key=x.py::test_gone") == [5.0]


def test_an_id_that_no_command_can_name_is_refused(desk: Desk) -> None:
    desk.record(tests={"a\0b": [1.0, 1.0]})
    ran = desk.run("accept", "run.json")
    assert ran.code == 3
    assert "expected an id without null characters, found 'a\\x00b'" in ran.errors


def test_a_run_prints_the_same_for_files_that_look_like_options(project: Project) -> None:
    """Pytest is told by the folder: other programs in between need not know two dashes."""
    body = "def test_a(ttnn_perf):\n    ttnn_perf.record('latency', [1.0, 1.0], unit='ms')\n"
    for name in ("--ttnn-perf-update=all.py", "test_other.py"):
        (project.path / name).write_text(body)
    (project.path / "pytest.ini").write_text("[pytest]\npython_files = *.py\n")

    ran = project.pytest("--ttnn-perf", "--import-mode=importlib", ".")

    place = "./--ttnn-perf-update=all.py::test_a"
    assert place_of(place.removeprefix("./")) == place
    (command,) = set(re.findall(rf"pytest {re.escape(place)}.*", ran.text))
    command = command.replace("pytest", f"{sys.executable} -m pytest --import-mode=importlib", 1)
    done = project.run(str(BASH), "-c", f"{command} --ttnn-perf-isolate inline")
    assert done.code == 0, done.text
    found = {file.name for file in (project.path / "baselines").rglob("*.json")}
    assert found == {"--ttnn-perf-update%3Dall.json"}
