"""Many machines that send runs at once, to a server that is killed meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.settings import HISTORY_VARIABLE, database_url
from pytest_ttnn_perf.history.database import Database, read_runs, send
from pytest_ttnn_perf.history.runs import RecordFile, RunSelection
from tests.harness.history_writer import METRICS, TESTS, run_of, value_of
from tests.postgresql.server import PASSWORD

if TYPE_CHECKING:
    from tests.postgresql.server import Server

WRITERS, RUNS = 8, 100
#: The server is killed once so many runs have arrived.
ARRIVED = 200


def test_all_runs_arrive_once_though_the_server_is_killed_meanwhile(
    server: Server, url: str, tmp_path: Path
) -> None:
    environment = {**os.environ, HISTORY_VARIABLE: url}
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.harness.history_writer", str(writer), str(RUNS)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for writer in range(WRITERS)
    ]  # fmt: skip
    name = url.rpartition("/")[2]
    while _arrived(server, name) < ARRIVED:
        assert any(writer.poll() is None for writer in writers)
        time.sleep(0.05)
    server.kill()
    time.sleep(1)
    server.start()

    database = Database(database_url(url, tmp_path))
    for writer, process in enumerate(writers):
        left, said = process.communicate()
        assert process.returncode == 0, said
        assert PASSWORD not in said
        for number in map(int, left.split()):  # as history import does for those that were told
            send(database, run_of(writer, number), RecordFile(Path("-")))
    assert _found(database, tmp_path) == {
        (f"night-{number:03}", f"{writer}/8"): sorted(
            value_of(writer, number, test) for test in range(TESTS) for _ in METRICS
        )
        for writer in range(WRITERS)
        for number in range(RUNS)
    }
    again = {send(database, run_of(3, number), RecordFile(Path("-"))) for number in range(10)}
    assert again == {False}
    runs = WRITERS * RUNS
    counts = {"run": runs, "record": runs, "observation": runs * TESTS * len(METRICS)}
    for table, count in counts.items():
        assert server.psql(f"SELECT count(*) FROM ttnn_perf_{table}", name) == str(count)


def _arrived(server: Server, database: str) -> int:
    made = server.psql("SELECT to_regclass('ttnn_perf_run') IS NOT NULL", database)
    return int(server.psql("SELECT count(*) FROM ttnn_perf_run", database)) if made == "t" else 0


def _found(database: Database, folder: Path) -> dict[tuple[str | None, str | None], list[float]]:
    history = read_runs(database, folder, RunSelection(all_branches=True))
    return {
        (run.id, run.environment.shard): sorted(reading.value for reading in run.readings)
        for run in history.runs
    }
