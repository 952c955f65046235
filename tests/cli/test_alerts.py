"""From a red night to its owner: an issue, a reproduction, an alert."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.behaviour.turns import IN_WORKERS, id_of, latencies, write_turns
from tests.harness.histories import TEST, Histories

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project

MARK = re.compile(r"<!-- ttnn-perf issue [0-9a-f]{12}")


def test_an_issue_stays_the_same_when_nights_are_added(
    histories: Histories, project: Project
) -> None:
    assert project.cli("trends", "--format=issue").code == 2  # there are no runs
    commits = histories.nights([10.0] * 12 + [11.0] * 6)
    first = project.cli("trends", "--format=issue").text
    histories.nights([11.0] * 4)
    later = project.cli("trends", "--format=issue").text
    assert MARK.findall(first) == MARK.findall(later) != []
    assert first.startswith(f"# {TEST} latency +10.")
    assert f"$ ttnn-perf bisect {commits[11][:12]} {commits[12][:12]} --metric latency" in first
    assert "Last good run: 2026-" in first
    assert "First bad run: " in first
    assert f"$ git checkout {commits[12]} && git submodule update --init --recursive && " in first
    assert f"pytest --ttnn-perf {TEST}\n" in first


def test_what_is_not_slower_is_no_issue(histories: Histories, project: Project) -> None:
    histories.nights([11.0] * 12 + [10.0] * 6)
    assert project.cli("trends", "--format=issue").text == "Nothing became slower for good."


def test_a_failure_is_measured_again_and_given_to_a_command(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESH_DEVICE", "N150 x")
    write_turns(project, a=latencies(10.0), b=latencies(10.0))
    assert project.pytest("--ttnn-perf-update", "--ttnn-perf-json=fine.json", *IN_WORKERS).code == 0
    write_turns(project, a=latencies(15.0), b=latencies(10.0))
    assert project.pytest("--ttnn-perf", "--ttnn-perf-json=run.json", *IN_WORKERS).code == 1

    shown = project.cli("repro", "run.json", id_of("a"))
    assert shown.code == 0
    *about, command = shown.text.splitlines()
    assert about[0] == f"test: {id_of('a')}"
    assert "variables: MESH_DEVICE='N150 x'" in about
    assert command == f"MESH_DEVICE='N150 x' pytest --ttnn-perf '{id_of('a')}'"
    (told,) = json.loads(project.cli("repro", "run.json", "*a]", "--format=json").text)["tests"]
    assert dict(told["steps"])["run"] == command

    sent = project.cli("alert", "run.json", "--run", "cat > alert.json")
    assert (sent.code, sent.text.partition(": ")[0]) == (0, "alert"), sent.errors
    alert = json.loads((project.path / "alert.json").read_text())
    (test,) = alert["tests"]
    assert (test["test"], test["outcome"], test["file"]) == (
        id_of("a"),
        "REGRESSED",
        "test_model.py",
    )
    assert test["reproduce"]["run"] == command
    assert alert["title"].startswith(f"{id_of('a')}: latency ")

    failed = project.cli("alert", "run.json", "--run", "echo no such chat >&2; exit 3")
    assert failed.code == 1
    assert "ended with code 3" in failed.text or "exit code 3" in failed.text
    assert "no such chat" in failed.text
    quiet = project.cli("alert", "fine.json", "--run", "touch called")
    assert (quiet.code, quiet.text) == (0, "nothing failed: no alert")
    assert not (project.path / "called").exists()
    assert project.cli("repro", "run.json", "test_other.py").code == 2
