"""A history database in SQLite, at 1,000 tests with 6 metrics and 365 runs, held to its bars.

    python benchmarks/history_database.py [--tests 1000] [--runs 365]

CPU seconds of this process, which does all the work, the best of three: to send a run at its end,
to read the last 20 runs of all series, and one test over all runs. Every metric has ten samples and
a verdict. All runs but the first and the last three are copies that SQL makes, one after another,
with other values. Exit code 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, text

from pytest_ttnn_perf.core.observation import Run, decode_run
from pytest_ttnn_perf.core.settings import database_url
from pytest_ttnn_perf.history.database import RUN, Database, read_runs, send
from pytest_ttnn_perf.history.runs import RecordFile, RunSelection
from pytest_ttnn_perf.report.run import run_text

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS: Final = 6
SAMPLES: Final = 10
LAST: Final = 20
ROUNDS: Final = 3
BAR_SEND_S: Final = 1.0
BAR_READ_S: Final = 1.0
BAR_BYTES: Final = 800 * 1000 * 1000


def record(rng: random.Random, tests: int, number: int) -> Run:
    """Return a run of one night."""
    month, day = 1 + number // 31, 1 + number % 31
    return decode_run(
        {
            "format": 1,
            "id": f"2026{month:02}{day:02}T020000Z-{number:06x}",
            "environment": {
                "started_at": f"2026-{month:02}-{day:02}T02:00:00+00:00",
                "commit": f"{number:040x}",
                "dirty": False,
                "runner": f"runner-{number % 4}",
                "ttnn": "0.81.1",
            },
            "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
            "tests": {f"models/test_{t // 20}.py::test_layer[{t % 20}]": test(rng)
                      for t in range(tests)},
        }
    )  # fmt: skip


def test(rng: random.Random) -> dict[str, Any]:
    metrics, verdicts = {}, {}
    for place in range(METRICS):
        level = 1e6 * (1 + place)
        samples = [level * rng.gauss(1, 0.005) for _ in range(SAMPLES)]
        metrics[f"time_{place}"] = {"unit": "ns", "samples": samples}
        verdicts[f"time_{place}"] = {
            "unit": "ns", "outcome": "WITHIN", "observed": samples[0], "centre": level,
            "change": samples[0] / level - 1, "limit": 0.05, "samples": SAMPLES, "sessions": 10,
        }  # fmt: skip
    return {"metrics": metrics, "verdicts": verdicts, "facts": {"batch": 8, "dtype": "bfloat8_b"}}


def cpu_seconds(what: Callable[[], object]) -> float:
    start = time.process_time()
    what()
    return time.process_time() - start


def send_one(database: Database, run: Run, written: str) -> None:
    """Send a run whose record was written before."""
    assert send(database, run, RecordFile(Path("run.json")), text=written)


def copy_night(number: int, connection: Connection) -> None:
    """Insert a run as another one was, with other values."""
    columns = ", ".join(c.name for c in RUN.columns if c.name not in {"id", "run", "started_s"})
    copied = {"number": number, "name": f"copy-{number}", "night": number * 86_400.0}
    statements = [
        f"INSERT INTO ttnn_perf_run (id, run, started_s, {columns}) "
        f"SELECT :number, :name, started_s + :night, {columns} FROM ttnn_perf_run WHERE id = 1",
        "INSERT INTO ttnn_perf_observation SELECT :number, number, test, metric, unit, better, "
        "kind, source, key, setting, value * (1 + :night / 1e9), outcome, reason, baseline, "
        "change * (1 + :night / 1e9), change_limit, gated, explains, written "
        "FROM ttnn_perf_observation WHERE run_id = 1",
        "INSERT INTO ttnn_perf_record SELECT :number, content FROM ttnn_perf_record "
        "WHERE run_id = 1",
    ]
    for statement in statements:
        connection.execute(text(statement), copied)


def size_of(database: Database) -> int:
    assert database.url.file is not None
    return database.url.file.stat().st_size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=365)
    options = parser.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        database = Database(database_url("sqlite:///perf.db", Path(folder)))
        first = record(rng, options.tests, 0)
        send_one(database, first, run_text(first))
        for number in range(2, options.runs - ROUNDS + 1):
            database.write(partial(copy_night, number))
        runs = [record(rng, options.tests, 340 + n) for n in range(ROUNDS)]
        sending = [cpu_seconds(partial(send_one, database, r, run_text(r))) for r in runs]
        branches = RunSelection(all_branches=True)
        of_last = partial(read_runs, database, Path(folder), branches, last=LAST)
        reading = min(cpu_seconds(of_last) for _ in range(ROUNDS))
        found = of_last().runs
        assert [len(run.readings) for run in found] == [options.tests * METRICS] * LAST
        size = size_of(database)
    print(f"shape: {options.tests} tests x {METRICS} metrics x {options.runs} runs, SQLite")
    print(f"send a run:                 {min(sending):6.2f} s CPU (bar: {BAR_SEND_S:.0f} s)")
    print(f"read the last {LAST} of all:     {reading:6.2f} s CPU (bar: {BAR_READ_S:.0f} s)")
    print(f"size:                       {size / 1e6:6.0f} MB (bar: {BAR_BYTES / 1e6:.0f} MB)")
    met = min(sending) <= BAR_SEND_S and reading <= BAR_READ_S and size <= BAR_BYTES
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
