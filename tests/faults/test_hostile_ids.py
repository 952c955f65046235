"""Ids of tests that hold anything: nothing that is written or printed breaks."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project

#: As a project gets them that asks pytest not to escape ids, or makes them in a hook.
RAW = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"
IDS = {
    "markup": "<script>alert(1)</script>|`x`*b*",
    "newline": "a\nb\r\nc",
    "colons": "a::b::error::c,d%0A",
    "ansi": "\x1b[31mred\x1b[0m",
    "control": "\x01\x02\x7f\x9b",
    "emoji": "👩‍🚀|漢字",
    "long": "x" * 10_000,
}


def test_reports_stay_whole(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(
        test_model=f"""
        import pytest

        IDS = {list(IDS.values())!r}

        @pytest.mark.parametrize("value", range(len(IDS)), ids=IDS)
        def test_model(ttnn_perf, value):
            ttnn_perf.record("latency", 10.0, unit="ms")
        """
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    options = ("--ttnn-perf-markdown=r.md", "--ttnn-perf-gitlab=q.json", "--junitxml=j.xml")

    arguments = ("--ttnn-perf", "--ttnn-perf-isolate=process", "-o", RAW, *options)
    ran = project.pytest_process(*arguments, "-p", "no:cacheprovider", "-rN")

    assert ran.code == 1, ran.text + ran.errors
    ours = ran.text[ran.text.index("=== ttnn-perf ===") :]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", ours)
    lines = [line for line in ours.splitlines() if line.startswith("::")]
    errors = [line for line in lines if line.startswith("::error file=test_model.py,line=")]
    assert len(errors) == len(IDS)
    rows = [line for line in ours.splitlines() if line.endswith("NO_BASELINE")]
    assert len(rows) == len(IDS)
    assert max(map(len, rows)) < 400
    report = (project.path / "r.md").read_text()
    table = report.partition("All metrics")[2].splitlines()
    assert len([line for line in table if line.endswith("| NO_BASELINE |")]) == len(IDS)
    assert "<script>" not in re.sub("`[^`]*`|```sh.*?```", "", report, flags=re.DOTALL)
    found = ET.parse(project.path / "j.xml").findall(".//testcase/properties")
    assert len(found) == len(IDS)
    quality = json.loads((project.path / "q.json").read_text())
    assert {each["location"]["path"] for each in quality} == {"test_model.py"}
