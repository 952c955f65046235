"""What else the machine does while times are taken: said, recorded, and never compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf.machine.environment import ROOT
from tests.behaviour.model import outcomes

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project

MEASURED = """
    def test_model(ttnn_perf):
        ttnn_perf.measure(sum, range(1000))
        ttnn_perf.record("latency", 12.5, unit="ms")
"""
FOUND = "load 99999 on "


def host(project: Project, monkeypatch: pytest.MonkeyPatch, load: str | None) -> None:
    """Let the machine say this of its load; None for nothing."""
    folder = project.path / "host"
    (folder / "proc").mkdir(parents=True, exist_ok=True)
    (folder / "proc" / "loadavg").unlink(missing_ok=True)
    if load is not None:
        (folder / "proc" / "loadavg").write_text(f"{load} 0.00 0.00 9999/99999 1\n")
    monkeypatch.setenv(ROOT, str(folder))


def told(project: Project) -> tuple[str, str | None, dict[str, Any]]:
    """Return the outcome and the reason of the rule in the last run, and what it looked at."""
    (test,) = project.records()[-1]["tests"].values()
    answers = [
        *(each for each in test["findings"] if each["code"] == "TTP006"),
        *(each for each in test["unanswered"] if "TTP006" in each["codes"]),
    ]
    (answer,) = answers
    return answer["outcome"], answer["reason"], test.get("environment", {})


def test_a_busy_machine_is_told_fails_nothing_and_is_neither_stored_nor_compared(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(test_model=MEASURED)
    host(project, monkeypatch, "0.00")
    project.pytest("--ttnn-perf-update=new")
    stored = project.baseline().read_text()
    host(project, monkeypatch, "99999.00")

    ran = project.pytest("--ttnn-perf")

    assert "load_1m" not in stored
    assert outcomes(project)["latency"] == "WITHIN"
    assert "TTP006 busy-host" in ran.text
    outcome, reason, facts = told(project)
    assert (outcome, str(reason).startswith(FOUND)) == ("FOUND", True)
    assert (facts["load_1m"], facts["runnable_threads"]) == (99999.0, 9998)
