"""``frames.runs``, ``frames.findings`` and ``frames.baselines``: what runs left, as rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf import frames

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

MODEL = """
    import os

    def test_model(ttnn_perf):
        ttnn_perf.record("latency", [float(os.environ.get("MS", 10))] * 3, unit="ms")
        ttnn_perf.check_accuracy(top1=0.75)

    def test_broken(ttnn_perf):
        assert "BROKEN" not in os.environ
        ttnn_perf.record("count", 4, kind="count")
"""
TEST = "test_model.py::test_model"


@pytest.fixture
def model(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    project.write(test_model=MODEL)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-label", "first")
    monkeypatch.setenv("MS", "15")
    monkeypatch.setenv("BROKEN", "1")
    project.pytest("--ttnn-perf")
    return project


def test_what_runs_leave_is_a_row_per_test_and_metric(model: Project) -> None:
    frame = frames.runs()

    records = sorted(model.records(), key=lambda record: str(record["id"]))
    assert frame["run"].unique().tolist() == [record["id"] for record in records]
    assert str(frame["started_at"].dtype) == "datetime64[ns, UTC]"
    assert frame["started_at"].notna().all()
    assert frame["key"].str.startswith("host-").all()

    latency = frame[(frame["test"] == TEST) & (frame["metric"] == "latency")]
    first = latency[latency["label"] == "first"].iloc[0]
    assert (first["value"], first["n"], first["unit"]) == (10, 3, "ms")
    assert first["outcome"] == "NO_BASELINE"
    assert math.isnan(first["change"])
    second = latency[latency["label"].isna()].iloc[0]
    told = records[[record["label"] for record in records].index(None)]
    verdict = told["tests"][TEST]["verdicts"]["latency"]
    assert second["run"] == told["id"]
    assert (second["value"], second["outcome"]) == (15, "REGRESSED")
    assert second["baseline"] == verdict["centre"] == pytest.approx(10)
    assert second["change"] == verdict["change"] == pytest.approx(0.5)
    assert second["limit"] == verdict["limit"]


def test_a_test_without_a_result_has_a_row_that_says_so(model: Project) -> None:
    frame = frames.runs(model.path / ".ttnn_perf" / "runs")
    broken = frame[(frame["test"] == "test_model.py::test_broken") & (frame["value"].isna())]
    assert broken["outcome"].tolist() == ["NO_DATA"]
    assert broken["metric"].isna().all()
    assert broken["kind"].isna().all()
    assert broken["n"].tolist() == [0]


def test_sessions_of_baselines(model: Project) -> None:
    frame = frames.baselines()

    sessions = model.stored()["test_model"]["metrics"]["latency"]["sessions"]
    latency = frame[frame["metric"] == "latency"]
    assert latency[["median", "mad", "n"]].to_numpy().tolist() == sessions
    assert latency["session"].tolist() == [0]
    recorded = [record["id"] for record in model.records() if record["label"] == "first"]
    assert latency["run"].tolist() == recorded
    assert latency["current"].all()
    assert latency["test"].tolist() == [TEST]
    assert latency["accepted_at"].notna().all()
    assert latency["better"].tolist() == ["lower"]
    assert set(frame["test"]) == {TEST, "test_model.py::test_broken"}


def test_findings_are_rows_with_their_numbers(model: Project) -> None:
    frame = frames.findings()

    told = [
        (record["id"], test, found["code"], found["outcome"])
        for record in sorted(model.records(), key=lambda record: str(record["id"]))
        for test, judged in record["tests"].items()
        for found in judged["findings"]
    ]
    assert told
    columns = ["run", "test", "code", "outcome"]
    assert [tuple(row) for row in frame[columns].to_numpy().tolist()] == told
    assert frame["severity"].cat.categories.tolist() == ["error", "warning", "info"]


@pytest.mark.parametrize("name", ["runs", "findings", "baselines"])
def test_an_empty_folder_is_an_empty_frame_of_the_same_types(model: Project, name: str) -> None:
    empty = model.path / "empty"
    empty.mkdir()
    some, none = getattr(frames, name)(), getattr(frames, name)(empty)
    assert len(some) > 0
    assert len(none) == 0
    assert list(some) == list(none) == list(frames.COLUMNS[name])
    assert [dtype.name for dtype in some.dtypes] == [dtype.name for dtype in none.dtypes]


@pytest.mark.parametrize("name", ["runs", "findings", "baselines"])
def test_what_is_not_there_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(frames.InputError, match=r"nowhere: expected .* found nothing"):
        getattr(frames, name)(tmp_path / "nowhere")


def test_a_damaged_record_is_told_by_its_place(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text('{"format": 1, "tests": 3}')
    with pytest.raises(frames.InputError, match=r"run.json.*\['tests'\]: expected an object"):
        frames.runs(file)
