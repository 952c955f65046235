"""Of which more is better: all surfaces show the sign of the value, JSON that of the gate."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.harness.golden import assert_golden
from tests.report.test_ci_outputs import settled

if TYPE_CHECKING:
    from tests.harness.project import Project

MODEL = """
    import os

    import pytest

    @pytest.mark.ttnn_perf
    def test_model(ttnn_perf):
        share = float(os.environ["SHARE"])
        rates = [100.0 * share, 100.1 * share, 99.9 * share]
        ttnn_perf.record("rate", rates, unit="tok/s")
        ttnn_perf.record("hits", int(100 * share), kind="count", better="higher")
        ttnn_perf.check_accuracy(top1=0.8 * share)
        ttnn_perf.record("latency", [10.0 * share] * 3, unit="ms")
"""


@pytest.fixture
def measured(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project with a baseline, and the record of a run that is as good."""
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    monkeypatch.setenv("SHARE", "1")
    project.write(test_model=MODEL)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-checklist=off")
    project.pytest("--ttnn-perf", "--ttnn-perf-checklist=off", "--ttnn-perf-json=before.json")
    return project


def test_the_sign_is_that_of_the_value(measured: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARE", "0.91")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ran = measured.pytest(
        "--ttnn-perf",
        "--ttnn-perf-checklist=off",
        "--ttnn-perf-json=after.json",
        "--ttnn-perf-markdown=report.md",
        "--ttnn-perf-gitlab=quality.json",
        "--junitxml=junit.xml",
    )
    monkeypatch.delenv("GITHUB_ACTIONS")
    report = (measured.path / "report.md").read_text()
    quality = json.loads((measured.path / "quality.json").read_text())
    properties = ET.parse(measured.path / "junit.xml").getroot().iter("property")
    surfaces = {
        "pytest": re.sub(r".* generated xml file: .*\n", "", ran.text.partition("\n\n")[2]),
        "markdown": report,
        "gitlab": "\n".join(issue["description"] for issue in quality),
        "junit": "\n".join(f"{each.get('name')} {each.get('value')}" for each in properties),
        "gate": measured.cli("gate", "after.json").text,
        "compare": measured.cli("compare", "before.json", "after.json").text,
    }
    text = "\n".join(f"# {surface}\n{printed}\n" for surface, printed in surfaces.items())
    assert_golden("signs/lower", settled(measured, text))
    # JSON keeps the terms of the gate.
    verdicts = json.loads(measured.cli("gate", "after.json", "--format", "json").text)["verdicts"]
    changes = {verdict["metric"]: verdict["change"] for verdict in verdicts}
    worse = 1 / 0.91 - 1
    expected = {"rate": worse, "hits": 0.09, "top1": 0.09, "latency": -0.09}
    assert changes == pytest.approx(expected)
