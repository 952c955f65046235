"""The whole output of ``ttnn-perf`` on a record and its baselines; the contract has the JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.cli import main as command_line
from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from tests.harness.baselines import stored
from tests.harness.captures import capture, op
from tests.harness.golden import assert_golden
from tests.harness.project import clean, run_command

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

RESNET = "models/test_resnet.py::test_resnet50[8]"
TIME = MetricBaseline(
    Metric("wall_time", "ns"), (Session(1834211, 2113, 20), Session(1829004, 1987, 20))
)
PCC = MetricBaseline(Metric("pcc", "", Better.HIGHER, Kind.ACCURACY), (Session(0.999, 0.0, 1),))
TESTS: dict[str, Any] = {
    RESNET: {
        "metrics": {
            "wall_time": {"unit": "ns", "samples": [2_100_000, 2_110_000, 2_090_000]},
            "pcc": {"unit": "", "kind": "accuracy", "samples": [0.9987], "at_least": 0.99},
        },
    },
    "models/test_resnet.py::test_new": {
        "metrics": {"tokens": {"unit": "tok/s", "kind": "throughput", "samples": [21.4]}},
    },
}


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("gate", ("gate", "run.json", "--baselines", "baselines"), 1),
        ("show", ("show", "run.json"), 0),
        ("baseline_list", ("baseline", "list"), 0),
    ],
)
def test_command(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str, words: tuple[str, ...], code: int
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    desk.store(RESNET, stored(TIME, PCC))
    environment = {"python": "CPython 3.12.1", "commit": "abc1234", "dirty": True}
    desk.record(tests=TESTS, label="bfp8 weights", environment=environment)
    ran = run_command(*words)
    assert (ran.code, ran.errors) == (code, "")
    assert_golden(f"{name}_table", clean(ran.text))


def test_mistakes_name_what_was_meant(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    (desk.path / "capture.csv").write_text(capture(op("Matmul", 50_000)))
    (desk.path / "baselines").mkdir()
    assert "expected a run record, found an ops_perf_results CSV: ttnn-perf show" in (
        run_command("gate", "capture.csv").errors
    )
    with pytest.raises(SystemExit):
        command_line.parse(["statu"])
    assert "no command 'statu'; did you mean status?" in capsys.readouterr().err
