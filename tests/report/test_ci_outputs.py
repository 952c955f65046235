"""What CI systems are told of one run with every kind of result in it, whole."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.turns import latencies, write_turns
from tests.harness.golden import assert_golden
from tests.harness.project import clean

if TYPE_CHECKING:
    from tests.harness.project import Project

HOSTILE = "e|<b>`x`"


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project in a job of GitHub, with all sorts of results."""
    steady = latencies(10)
    names = ("fine", "slow", "fast", "broken")
    write_turns(project, **dict.fromkeys(names, steady))
    project.pytest("--ttnn-perf-update=new")
    write_turns(
        project,
        fine=steady,
        slow=latencies(12),
        fast=latencies(8),
        broken=["raise RuntimeError('out of <memory>')"],
        **{HOSTILE: steady},
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    monkeypatch.setenv("RUNNER_NAME", "tt-n150-07")
    return project


def settled(project: Project, text: str) -> str:
    text = clean(text).replace(f"{project.path.name}/", "PROJECT/")
    return re.sub(r"pytest-ttnn-perf [\d.]+", "pytest-ttnn-perf VERSION", text)


def test_everything_that_ci_is_told(project: Project) -> None:
    reports = ("--ttnn-perf-markdown=report.md", "--ttnn-perf-gitlab=quality.json")
    ran = project.pytest("--ttnn-perf", *reports, "--junitxml=junit.xml")
    assert ran.code == 1
    report = (project.path / "report.md").read_text()
    assert_golden("ci_markdown", settled(project, report))
    lines = [line for line in ran.text.splitlines() if line.startswith("::")]
    assert_golden("ci_annotations", settled(project, "\n".join(lines)))
    quality = json.loads((project.path / "quality.json").read_text())
    for issue in quality:  # one of the machine's own, as its key is in it
        assert len(issue.pop("fingerprint")) == 64
    assert_golden("ci_gitlab", settled(project, json.dumps(quality, indent=2)))
    assert_golden("ci_junit", settled(project, junit_text(project)))


def junit_text(project: Project) -> str:
    """Return the properties and outcomes of all tests, without what is pytest's own business."""
    root = ET.parse(project.path / "junit.xml").getroot()
    for element in root.iter():
        for name in ("time", "timestamp", "hostname"):
            element.attrib.pop(name, None)
        if element.tag in {"failure", "error"}:
            element.text = None
    return ET.tostring(root, encoding="unicode").replace("><", ">\n<")
