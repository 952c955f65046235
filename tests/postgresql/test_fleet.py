"""Several machines send runs to one server at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pytest_ttnn_perf.core.settings import HISTORY_VARIABLE, database_url
from pytest_ttnn_perf.history.database import Database, read_runs, send
from pytest_ttnn_perf.history.runs import RecordFile, RunSelection
from tests.harness.history_writer import METRICS, TESTS, run_of, value_of

WRITERS, RUNS = 8, 25


def test_eight_writers_lose_nothing(url: str, tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.harness.history_writer", str(writer), str(RUNS)],
            env={**os.environ, HISTORY_VARIABLE: url},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for writer in range(WRITERS)
    ]  # fmt: skip
    ends = [(*process.communicate(), process.returncode) for process in writers]
    assert ends == [("", "", 0)] * WRITERS

    database = Database(database_url(url, tmp_path))
    history = read_runs(database, tmp_path, RunSelection(all_branches=True))
    found = {
        (run.id, run.environment.shard): sorted(reading.value for reading in run.readings)
        for run in history.runs
    }
    assert found == {
        (f"night-{number:03}", f"{writer}/{WRITERS}"): sorted(
            value_of(writer, number, test) for test in range(TESTS) for _ in METRICS
        )
        for writer in range(WRITERS)
        for number in range(RUNS)
    }
    assert len(history.runs) == WRITERS * RUNS
    again = {send(database, run_of(3, number), RecordFile(Path("-"))) for number in range(RUNS)}
    assert again == {False}
