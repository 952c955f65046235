"""``ttnn-perf history prune``: what goes, what stays, and what is said of it."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from tests.harness.histories import TEST, Histories

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project


def aged(histories: Histories, days: float) -> Path:
    """Write the record of a run that started so many days ago."""
    at = datetime.now(timezone.utc) - timedelta(days=days)
    about = {"started_at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    return histories.record(None, {TEST: 10.0}, day=0, environment=about)


def left(histories: Histories) -> list[str]:
    return sorted(file.name for file in (histories.path / ".ttnn_perf/runs").iterdir())


def test_old_records_go(histories: Histories, project: Project) -> None:
    for days in (1, 100, 29, 31):
        aged(histories, days)
    dry = project.cli("history", "prune", "--keep", "30d", "--dry-run")
    assert dry.text == "would remove 2 records; kept 2 records"
    assert len(left(histories)) == 4
    ran = project.cli("history", "prune", "--keep", "30d")
    assert (ran.code, ran.errors) == (0, "")
    assert ran.text == "removed 2 records; kept 2 records"
    assert left(histories) == ["run-000.json", "run-002.json"]


def test_what_baselines_cite_and_what_is_no_record_stays(
    histories: Histories, project: Project
) -> None:
    cited = aged(histories, 300)
    assert project.cli("baseline", "accept", str(cited)).code == 0
    aged(histories, 200)
    folder = cited.parent
    journal = json.dumps({**json.loads(cited.read_text()), "tests": {}, "id": "x", "journal": True})
    for name, hours in (("live.jsonl", 1), ("killed.jsonl", 91 * 24)):
        (folder / name).write_text(journal + "\n")
        os.utime(folder / name, times=(time.time() - hours * 3600,) * 2)
    (folder / "torn.json").write_text('{"format": 1, "te')
    (folder / "notes.json").write_text('{"mine": true}')
    (folder / "link.json").symlink_to(cited)
    ran = project.cli("history", "prune", "--keep", "90d")
    assert ran.text == "removed 2 records; kept 2 records"
    kept = ["link.json", "live.jsonl", "notes.json", "run-000.json", "torn.json"]
    assert left(histories) == kept


def test_nothing_goes_where_nobody_knows_what_baselines_cite(
    histories: Histories, project: Project
) -> None:
    file = aged(histories, 300)
    assert project.cli("baseline", "accept", str(file)).code == 0
    (baseline,) = (project.path / "baselines").rglob("*.json")
    baseline.write_text("{")
    ran = project.cli("history", "prune", "--keep", "1d")
    assert (ran.code, ran.text) == (3, "")
    assert left(histories) == ["run-000.json"]


@pytest.mark.parametrize("keep", ["", "0", "90", "1.5d", "9" * 30])
def test_what_cannot_be_meant(project: Project, keep: str) -> None:
    ran = project.cli("history", "prune", f"--keep={keep}")
    assert ran.code == 2
    assert f"expected days such as 90d, found {keep!r}" in ran.errors


def test_a_test_that_is_called_prune(histories: Histories, project: Project) -> None:
    (commit,) = histories.commits(1)
    histories.record(commit, {"prune": 10.0}, day=0)
    assert "prune, latency" in project.cli("history", "--", "prune").text
