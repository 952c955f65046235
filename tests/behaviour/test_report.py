"""``ttnn-perf report``: a page of a run, of its history, and of captures."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.captures import capture, op, signpost
from tests.harness.golden import assert_golden
from tests.harness.histories import Histories

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

OPS = capture(
    signpost("PERF_DECODE"),
    op("MatmulDeviceOperation", 2000.0, {"DEVICE FW START CYCLE": "1000"}),
    op("LayerNormDeviceOperation", 500.0, {"DEVICE FW START CYCLE": "4000"}, cores=8),
    op("MatmulDeviceOperation", 2500.0, {"DEVICE FW START CYCLE": "5000"}),
    signpost("PERF_DECODE_END"),
)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the pages that are drawn from now on, as plain JSON."""
    from pytest_ttnn_perf.cli import history
    from pytest_ttnn_perf.history import page

    drawn: list[Any] = []

    def draw(shown: Any) -> str:
        drawn.append(json.loads(json.dumps(shown)))
        return f"<title>{shown['title']}</title>"

    for module in (history, page):
        monkeypatch.setattr(module, "page_html", draw)
    return drawn


def recorded(project: Project, name: str = "run.json", **more: Any) -> Path:
    """Write a record with a test that regressed, and one that has nothing to compare with."""
    verdict = {
        "unit": "ms", "outcome": "REGRESSED", "observed": 12.0, "centre": 10.0, "change": 0.2,
        "limit": 0.05, "samples": 3, "sessions": 4, "confirmed": [12.1],
    }  # fmt: skip
    finding = {
        "code": "TTP203", "name": "layout-conversions", "severity": "warning", "outcome": "FOUND",
        "reason": "2 conversions", "saving_ns": 1500.0, "step_ns": 6000.0, "fix": "Keep one.",
        "evidence": [{"subject": "Tilize 1x32", "value": 1500.0, "unit": "ns", "share": 0.25}],
    }  # fmt: skip
    waived = {**finding, "code": "TTP307", "name": "data-movement", "waived": "once a day"}
    slow = {
        "metrics": {
            "latency": {"unit": "ms", "samples": [11.9, 12.0, 12.3], "confirmations": [[12.1]],
                        "target": 9.0},
            "top1": {"unit": "", "kind": "accuracy", "samples": [0.99999999], "gated": False,
                     "why_ungated": "told by a helper"},
        },
        "verdicts": {"latency": verdict}, "findings": [finding, waived], "facts": {"batch": 8},
        "unanswered": [{"outcome": "NOT_MEASURED", "reason": "needs ops", "codes": ["TTP401"]}],
    }  # fmt: skip
    new = {
        "metrics": {"latency": {"unit": "us", "samples": [900.0]}},
        "verdicts": {"latency": {"unit": "us", "outcome": "NO_BASELINE", "reason": "new test",
                                 "observed": 900.0, "samples": 1}},
    }  # fmt: skip
    document = {
        "format": 1, "id": "20261101T020000Z-000001",
        "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
        "environment": {"started_at": "2026-11-01T02:00:00Z", "commit": "0123456789abcdef",
                        "runner": "lab-7", "ttnn": "0.81.1"},
        "tests": {"test_a.py::test_slow": slow, "test_a.py::test_new[<b>]": new}, **more,
    }  # fmt: skip
    file = project.path / name
    file.write_text(json.dumps(document))
    return file


def test_the_whole_page_of_a_run(project: Project, pages: list[Any]) -> None:
    recorded(project)
    ran = project.cli("report", "run.json")
    assert (ran.code, ran.errors) == (0, "")
    assert ran.text.splitlines() == ["wrote report.html: 2 of 2 tests failed"]
    title = f"{project.path.name}: 2 of 2 tests failed (n150, 0123456)"
    assert (project.path / "report.html").read_text() == f"<title>{title}</title>"
    page = {**pages[0], "rules": list(pages[0]["rules"])}  # their texts are those of the rules
    assert_golden("page", json.dumps(page, indent=1, ensure_ascii=False))


def test_the_newest_record_is_taken_and_its_history(project: Project, pages: list[Any]) -> None:
    histories = Histories(project.path)
    commits = histories.nights([10.0] * 12 + [11.0] * 8)
    ran = project.cli("report", "-o", "out/page.html")
    assert (ran.code, ran.errors) == (0, "")
    (page,) = pages
    assert [run["commit"] for run in page["runs"]] == commits
    (metric,) = page["tests"][0]["metrics"]
    history = metric["history"]
    assert history["runs"] == list(range(20))
    assert (history["values"][0], history["values"][-1]) == (10, 11.022)
    project.cli("report", "--last", "3")
    assert [run["commit"] for run in pages[1]["runs"]] == commits[-3:]


def test_two_runs_are_no_page(project: Project, pages: list[Any]) -> None:
    recorded(project)
    recorded(project, "again.json")
    ran = project.cli("report", "run.json", "again.json")
    assert (ran.code, ran.text, pages) == (2, "", [])
    assert "run.json and again.json are two run records: a page shows one run" in ran.errors


def test_a_capture_is_a_page_with_its_ops(project: Project, pages: list[Any]) -> None:
    (project.path / "ops.csv").write_text(OPS)
    ran = project.cli("report", "ops.csv")
    assert (ran.code, ran.errors) == (0, "")
    assert ran.text == "wrote report.html: no findings"
    (test,) = pages[0]["tests"]
    (region,) = test["regions"]
    assert (test["id"], region["name"], region["time_us"]) == ("ops.csv", "decode", 5.0)
    assert [(each["name"], each["calls"], each["time_us"]) for each in region["ops"]] == [
        ("Matmul", 2, 4.5),
        ("LayerNorm", 1, 0.5),
    ]


def attaching(project: Project) -> None:
    """Store a baseline of a test with a capture, and make an op of it slower."""
    project.write(
        test_model="""
        import pytest

        @pytest.mark.ttnn_perf
        def test_model(ttnn_perf):
            ttnn_perf.attach("ops.csv")
        """
    )
    (project.path / "ops.csv").write_text(OPS)
    project.pytest("--ttnn-perf-update=new")
    (project.path / "ops.csv").write_text(OPS.replace("2500.0", "4500.0"))


def test_a_test_gets_its_capture_and_its_change_by_op(project: Project, pages: list[Any]) -> None:
    attaching(project)
    project.pytest("--ttnn-perf", "--ttnn-perf-json=run.json")
    project.cli("report", "run.json")
    (test,) = pages[0]["tests"]
    (waterfall,) = test["waterfalls"]
    assert (waterfall["metric"], waterfall["region"]) == ("device_kernel_time.decode", "decode")
    assert (waterfall["before_us"], waterfall["after_us"]) == (5.0, 7.0)
    assert sum(part["change_us"] for part in waterfall["parts"]) == 2.0
    assert test["by_op"].startswith("decode: +40.0 % (+2.00 µs)")
    assert any(command.startswith("ttnn-perf baseline accept") for command in test["commands"])

    # Once the slower result is the baseline, there is no change to show.
    project.cli("baseline", "accept", "run.json", "--reason", "wanted")
    project.cli("report", "run.json")
    assert pages[1]["tests"][0]["waterfalls"] == []
    told = "test_model.py::test_model: no waterfall: its baseline is not that of the run any more"
    assert told in pages[1]["notes"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "nothing to show: no run is recorded here: make one with pytest --ttnn-perf"),
        (("notes.txt",), 3, "notes.txt: its format is not known"),
        (("run.json", "-o", "."), 2, ".: expected a file for the page, found a folder"),
        (("run.json", "--baselines", "b"), 3, "b: expected a folder of baselines, found none"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    project: Project, pages: list[Any], words: tuple[str, ...], code: int, told: str
) -> None:
    recorded(project)
    (project.path / "notes.txt").write_text("nothing of ours")
    ran = project.cli("report", *words)
    assert (ran.code, ran.text, pages) == (code, "", [])
    assert re.match(rf"ttnn-perf: {re.escape(told)}", ran.errors), ran.errors
