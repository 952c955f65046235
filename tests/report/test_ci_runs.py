"""Annotations and properties in real sessions: whatever stands around them, they arrive whole."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.turns import IN_WORKERS, latencies, write_turns

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran


@pytest.fixture
def slower(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project with one slower and one faster test, in a job of GitHub."""
    write_turns(project, slow=latencies(10), fast=latencies(10))
    project.pytest("--ttnn-perf-update=new")
    write_turns(project, slow=latencies(20), fast=latencies(5))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    return project


def notes_of(ran: Ran) -> list[str]:
    """Return kind and title of each annotation that was printed on lines of their own."""
    lines = [line for line in ran.text.splitlines() if line.startswith("::")]
    assert ran.text.count("::error ") == len(lines)
    return [line[2:].partition("::")[0] for line in lines]


def test_annotations_stand_on_lines_of_their_own(slower: Project) -> None:
    """Also that of a test whose worker died; properties stand beside those of the test."""
    write_turns(slower, slow=["os.kill(os.getpid(), 9)"], fast=latencies(5))
    source = slower.path / "test_model.py"
    text = source.read_text().replace("turn = ", "print('no end', end=''); turn = ")
    text = text.replace("(ttnn_perf, name):", "(ttnn_perf, name, record_property):")
    source.write_text(text + "\n    record_property('board', 'n150')\n")
    line = source.read_text().splitlines().index("@pytest.mark.ttnn_perf") + 1

    options = ("-s", "--junitxml=junit.xml", "-o", "junit_family=xunit1")
    ran = slower.pytest_process("--ttnn-perf", *IN_WORKERS, *options)

    assert ran.code == 1
    place = f"file=test_model.py,line={line}"
    assert notes_of(ran) == [f"error {place},title=NO_DATA test_model[slow]"]
    assert properties(slower, "test_model[slow]")["ttnn_perf.verdict"] == "NO_DATA"
    fast = properties(slower, "test_model[fast]")
    assert (fast["ttnn_perf.verdict"], fast["board"]) == ("IMPROVED", "n150")


def properties(project: Project, name: str) -> dict[str, str]:
    """Return the properties of a test in the JUnit report; each stands there once."""
    root = ET.parse(project.path / "junit.xml").getroot()
    cases = [case for case in root.iter("testcase") if case.get("name") == name]
    found = [each for case in cases for each in case.iter("property")]
    assert len(found) == len({each.get("name") for each in found})
    return {str(each.get("name")): str(each.get("value")) for each in found}
