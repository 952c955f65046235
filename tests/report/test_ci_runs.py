"""Annotations and properties in real sessions: whatever stands around them, they arrive whole."""

from __future__ import annotations

import json
import warnings
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import entry_of
from tests.behaviour.turns import IN_WORKERS, id_of, latencies, write_turns

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
    assert ran.text.count("::error ") + ran.text.count("::notice ") == sum(
        line.startswith(("::error ", "::notice ")) for line in lines
    )
    heads = [line[2:].partition("::")[0] for line in lines]
    return [head for head in heads if "TTP" not in head]


def test_annotations_stand_on_lines_of_their_own(slower: Project) -> None:
    source = slower.path / "test_model.py"
    source.write_text(source.read_text().replace("turn = ", "print('no end', end=''); turn = "))
    line = source.read_text().splitlines().index("@pytest.mark.ttnn_perf") + 1

    ran = slower.pytest_process("--ttnn-perf", *IN_WORKERS, "-s", "--ttnn-perf-confirm=0")

    assert ran.code == 1
    place = f"file=test_model.py,line={line}"
    assert notes_of(ran) == [
        f"error {place},title=REGRESSED test_model[slow]",
        f"notice {place},title=IMPROVED test_model[fast]",
    ]


def test_test_whose_worker_died_has_its_line(slower: Project) -> None:
    write_turns(slower, slow=["os.kill(os.getpid(), 9)"], fast=latencies(10))

    ran = slower.pytest_process("--ttnn-perf", *IN_WORKERS, "--junitxml=junit.xml")

    location = entry_of(slower, id_of("slow"))["location"]
    error = f"error file=test_model.py,line={location['line']},title=NO_DATA test_model[slow]"
    assert error in notes_of(ran)
    assert properties(slower, "test_model[slow]")["ttnn_perf.verdict"] == "NO_DATA"


def properties(project: Project, name: str) -> dict[str, str]:
    """Return the properties of a test in the JUnit report; each stands there once."""
    root = ET.parse(project.path / "junit.xml").getroot()
    cases = [case for case in root.iter("testcase") if case.get("name") == name]
    found = [each for case in cases for each in case.iter("property")]
    assert len(found) == len({each.get("name") for each in found})
    return {str(each.get("name")): str(each.get("value")) for each in found}


@pytest.mark.parametrize("mode", [("inline", "xunit2"), ("process", "xunit1")], ids=" ".join)
def test_junit_report_has_the_metrics_beside_the_tests_own_properties(
    slower: Project, mode: tuple[str, str]
) -> None:
    source = slower.path / "test_model.py"
    text = source.read_text().replace("(ttnn_perf, name):", "(ttnn_perf, name, record_property):")
    source.write_text(text + "\n    record_property('board', 'n150')\n")
    isolate, family = mode

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "record_property is incompatible")
        options = ("--junitxml=junit.xml", "-o", f"junit_family={family}")
        slower.pytest("--ttnn-perf", f"--ttnn-perf-isolate={isolate}", *options)

    found = properties(slower, "test_model[slow]")
    expected = {
        "board": "n150",
        "ttnn_perf.verdict": "REGRESSED",
        "ttnn_perf.latency": "20",
        "ttnn_perf.latency.unit": "ms",
        "ttnn_perf.latency.baseline": "10",
        "ttnn_perf.latency.change_percent": "100",
        "ttnn_perf.latency.verdict": "REGRESSED",
    }
    assert expected.items() <= found.items()
    assert properties(slower, "test_model[fast]")["ttnn_perf.verdict"] == "IMPROVED"


def test_record_names_the_runner(slower: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNER_NAME", "tt-n150-07")
    slower.pytest("--ttnn-perf", "--ttnn-perf-json=run.json")
    document = json.loads((slower.path / "run.json").read_text())
    assert document["environment"]["runner"] == "tt-n150-07"
