"""``--ttnn-perf-markdown`` and ``markdown``: a report for reviewers, also in GitHub's summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    MODEL,
    counts_of,
    write_latency,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project


@pytest.fixture
def slower(project: Project) -> Project:
    """Return a project whose test has become slower."""
    write_latency(project, 10.0)
    project.pytest("--ttnn-perf-update=new")
    write_latency(project, 20.0)
    return project


@pytest.fixture
def summary(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that GitHub would show beside the step."""
    file = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    return file


def test_report_says_what_failed_and_what_to_run(slower: Project) -> None:
    ran = slower.pytest("--ttnn-perf", "--ttnn-perf-markdown=out/report.md")

    assert ran.code == 1
    text = (slower.path / "out/report.md").read_text()
    assert text.startswith("## ❌ ttnn-perf: 1 of 1 test failed\n")
    assert f"| `{MODEL}` | `latency` | 10.00 ms | 20.00 ms | +100.0 % |" in text
    assert "```sh\nttnn-perf baseline accept .ttnn_perf/runs/" in text
    (record,) = [name for name in slower.files() if name in text and name.startswith(".ttnn_perf")]
    assert text.splitlines()[-1].startswith(f"<sub>run record `{record}`")


def test_command_line_prints_the_same(slower: Project) -> None:
    slower.pytest("--ttnn-perf", "--ttnn-perf-markdown=report.md", "--ttnn-perf-json=run.json")

    ran = slower.cli("gate", "run.json", "--format", "markdown")

    assert ran.code == 1
    written = (slower.path / "report.md").read_text().splitlines()
    # All but the last line, which names another copy of the record, and what to do: from a
    # record nobody needs to run anything.
    accept = 'ttnn-perf baseline accept run.json --reason "why" -- test_model.py::test_model'
    lines = [line.replace("host-x86_64", "host-ARCH") for line in written[:-1]]
    assert accept in ran.text.splitlines()
    assert ran.text.splitlines()[:-1] == [
        accept if line.startswith("pytest ") else line for line in lines
    ]


def test_summary_of_github_is_added_to(slower: Project, summary: Path) -> None:
    summary.write_text("of another step\n")

    slower.pytest("--ttnn-perf")

    before, _, after = summary.read_text().partition("## ❌ ttnn-perf: 1 of 1 test failed\n")
    assert before == "of another step\n"
    assert after.count("<sub>") == 1


def test_summary_that_cannot_be_written_is_named_and_fails_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_latency(project, 12.5)
    place = project.path / "nowhere" / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))

    ran = project.pytest("--ttnn-perf-update=new")

    assert (ran.code, counts_of(ran)) == (1, "1 passed")
    assert f"not written: {place}: cannot write: No such file or directory" in ran.text
