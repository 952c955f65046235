"""``frames.runs``: what runs left, as rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

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


def test_what_runs_leave_is_rows(model: Project) -> None:
    records = sorted(model.records(), key=lambda record: str(record["id"]))
    check_runs(records)
    empty = model.path / "empty"
    empty.mkdir()
    some, none = frames.runs(), frames.runs(empty)
    assert (len(some) > 0, len(none)) == (True, 0)
    assert list(some) == list(none) == list(frames.COLUMNS["runs"])
    assert [dtype.name for dtype in some.dtypes] == [dtype.name for dtype in none.dtypes]


def check_runs(records: list[dict[str, Any]]) -> None:
    frame = frames.runs()
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
    told = next(record for record in records if record["label"] is None)
    verdict = told["tests"][TEST]["verdicts"]["latency"]
    assert second["run"] == told["id"]
    assert (second["value"], second["outcome"]) == (15, "REGRESSED")
    assert second["baseline"] == verdict["centre"] == pytest.approx(10)
    assert second["change"] == verdict["change"] == pytest.approx(0.5)
    assert second["limit"] == verdict["limit"]

    broken = frame[(frame["test"] == "test_model.py::test_broken") & (frame["value"].isna())]
    assert (broken["outcome"].tolist(), broken["n"].tolist()) == (["NO_DATA"], [0])
    assert broken[["metric", "kind"]].isna().all(axis=None)


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(frames.InputError, match=r"nowhere: expected .* found nothing"):
        frames.runs(tmp_path / "nowhere")
