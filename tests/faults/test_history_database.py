"""A history database that is damaged, full, locked or newer: nothing is lost, nothing twice."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pytest_ttnn_perf.core.settings import HISTORY_VARIABLE, database_url
from pytest_ttnn_perf.history import database as databases
from pytest_ttnn_perf.history.database import (
    Database,
    HistoryError,
    read_runs,
    send,
)
from pytest_ttnn_perf.history.runs import RecordFile, RunSelection
from tests.harness.history_writer import METRICS, TESTS, run_of
from tests.harness.project import run_command

SOURCE = RecordFile(Path("-"))
#: Sends a run, and dies when all of it is written and nothing is committed. A cache of one page
#: makes SQLite write into the file meanwhile, so that the next one finds a file to be mended.
DYING = """
import os, signal
from sqlalchemy import event
from pytest_ttnn_perf.history.database import Database
from tests.harness.history_writer import *
made = Database._new_engine
def dying(self, *, writes):
    engine = made(self, writes=writes)
    event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA cache_size = 1"))
    event.listen(engine, "commit", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    return engine
Database._new_engine = dying
url = database_url(os.environ[HISTORY_VARIABLE], Path.cwd())
send(Database(url), run_of(0, 1), RecordFile(Path("-")))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one run in it, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    send(Database(database_url("sqlite:///perf.db", folder)), run_of(0, 0), SOURCE)
    return folder / "perf.db"


@pytest.fixture
def database(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database with one run in it; nobody waits long for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(databases, "_WAIT_S", 0.01)
    shutil.copy(made, "perf.db")
    return Database(database_url("sqlite:///perf.db", tmp_path))


def runs_in(database: Database) -> list[tuple[str | None, int]]:
    history = read_runs(database, Path.cwd(), RunSelection(all_branches=True))
    return [(run.id, len(run.readings)) for run in history.runs]


WHOLE = TESTS * len(METRICS)


def problem_of_sending(database: Database) -> str:
    with pytest.raises(HistoryError) as raised:
        send(database, run_of(0, 1), SOURCE)
    assert raised.value.__cause__ is None
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a diary\n" * 999, "expected a database of SQLite, found another file"),
        (None, "database disk image is malformed"),
    ],
    ids=["another file", "damaged"],
)
def test_what_is_no_database_is_said_and_left_alone(
    database: Database, content: bytes | None, problem: str
) -> None:
    file = Path("perf.db")
    content = content or file.read_bytes()[:4096] + b"\xff" * (file.stat().st_size - 4096)
    file.write_bytes(content)
    assert problem_of_sending(database) == f"sqlite:///perf.db: {problem}"
    for line in ("history", "trends", "history export", "history prune --keep=1d"):
        ran = run_command(*line.split(), "--history", "sqlite:///perf.db")
        assert (ran.code, ran.errors) == (3, f"ttnn-perf: sqlite:///perf.db: {problem}\n")
    assert file.read_bytes() == content


def test_a_disk_that_is_full_costs_the_run_that_is_sent_and_no_other(database: Database) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        problem = problem_of_sending(database)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert problem.startswith("sqlite:///perf.db: d")  # disk I/O error, or database or disk is full
    assert runs_in(database) == [("night-000", WHOLE)]
    assert send(database, run_of(0, 1), SOURCE) is True


def test_a_database_of_another_version_is_refused_by_name(database: Database) -> None:
    with closing(sqlite3.connect("perf.db")) as other, other:
        other.execute("UPDATE ttnn_perf_schema SET version = 7, written_by = '9.1.0'")
    before = Path("perf.db").read_bytes()
    problem = problem_of_sending(database)
    said = "it has version 7 of the tables, of pytest-ttnn-perf 9.1.0; this is"
    assert said in problem
    assert problem.endswith("pip install 'pytest-ttnn-perf[history]' --upgrade")
    with pytest.raises(HistoryError, match="version 7 of the tables"):
        runs_in(database)
    assert Path("perf.db").read_bytes() == before


def test_a_locked_database_is_waited_for_but_not_for_ever(database: Database) -> None:
    with closing(sqlite3.connect("perf.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert problem_of_sending(database) == "sqlite:///perf.db: database is locked"
        other.execute("ROLLBACK")
    assert send(database, run_of(0, 1), SOURCE) is True


def test_a_run_whose_sender_is_killed_is_not_there_and_can_be_sent(database: Database) -> None:
    environment = {**os.environ, HISTORY_VARIABLE: "sqlite:///perf.db", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", DYING], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert Path("perf.db-journal").stat().st_size > 0
    assert runs_in(database) == [("night-000", WHOLE)]
    assert send(database, run_of(0, 1), SOURCE) is True
    assert send(database, run_of(0, 1), SOURCE) is False


def test_runs_of_processes_that_write_at_once_arrive_whole(database: Database) -> None:
    Path("perf.db").unlink()  # who makes the tables is not agreed either
    environment = {**os.environ, HISTORY_VARIABLE: "sqlite:///perf.db", "PYTHONPATH": str(ROOT)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.harness.history_writer", str(writer), "10"],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        for writer in range(2)
    ]  # fmt: skip
    assert [writer.communicate()[0] for writer in writers] == ["", ""]
    found = runs_in(database)
    assert len(found) == 20
    assert {count for _, count in found} == {WHOLE}


ROOT = Path(__file__).parents[2]
