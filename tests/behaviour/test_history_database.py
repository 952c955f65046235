"""A history database: runs are sent there, and read, exported and pruned like records in files."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.settings import database_url
from pytest_ttnn_perf.history.database import Database, send
from pytest_ttnn_perf.history.runs import RecordFile
from tests.behaviour.model import configure, record_of, refusal_of, write_latency
from tests.harness.golden import assert_golden
from tests.harness.histories import TEST, Histories, document, edited, wobbled
from tests.harness.history_writer import hostile_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

URL = "sqlite:///perf.db"
DATABASE = ("--history", URL)
OTHER = "models/test_llama.py::test_prefill"


@pytest.fixture
def sent(histories: Histories, project: Project) -> Histories:
    """Nights of two tests that are in files and in a database: a step, a branch, a dirty run."""
    commits = histories.commits(14)
    for day, commit in enumerate(commits):
        verdict = {"unit": "ms", "outcome": "WITHIN", "centre": 10.0, "change": 0.01, "limit": 0.05}
        histories.record(
            commit, {TEST: wobbled(10.0 if day < 8 else 11.0, day), OTHER: wobbled(90.0, day)},
            day=day, host=f"runner-{day % 2}", verdicts=verdict, written=["latency"],
            environment={"ttnn": "0.81.1" if day < 8 else "0.82.0", "branch": "main"},
        )  # fmt: skip
    histories.record(commits[-1], {TEST: 5.0}, day=15, environment={"dirty": True})
    histories.git("checkout", "-q", "-b", "topic")
    histories.record(histories.commits(1)[0], {TEST: 7.0}, day=16)
    histories.git("checkout", "-q", "main")
    ran = project.cli("history", "import", *DATABASE)
    assert (ran.code, ran.text) == (0, f"sent 16 runs to {URL}")
    return histories


def rows(project: Project, statement: str) -> list[tuple[Any, ...]]:
    """Return what a statement finds in the database, for anybody who can read SQLite."""
    connection = sqlite3.connect(project.path / "perf.db")
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_a_database_tells_what_files_tell(sent: Histories, project: Project) -> None:
    del sent
    for command in (
        "history",
        f"history {TEST}",
        "history models --all-branches --dirty --last 3",
        "history --branch topic --metric latency",
        "trends",
    ):
        words = command.split()
        of_files, of_database = document(project, *words), document(project, *words, *DATABASE)
        assert of_database.pop("notes") == [*of_files.pop("notes"), f"read from {URL}"], command
        assert of_database == of_files, command


def test_sending_twice_changes_nothing(sent: Histories, project: Project) -> None:
    before = (project.path / "perf.db").read_bytes()
    ran = project.cli("history", "import", ".ttnn_perf/runs", *DATABASE)
    assert ran.text == f"sent 0 runs to {URL}; 16 already there"
    assert (project.path / "perf.db").read_bytes() == before

    (sent.path / ".ttnn_perf" / "runs" / "torn.json").write_text('{"format": 1, "te')
    assert_golden("history_import", project.cli("history", "import", *DATABASE).text)
    assert len(rows(project, "SELECT * FROM ttnn_perf_run")) == 16


def test_a_run_that_was_sent_before_it_was_over_is_completed(
    histories: Histories, project: Project
) -> None:
    (commit,) = histories.commits(1)
    file = histories.record(commit, {TEST: 10.0}, day=0, complete=False)
    project.cli("history", "import", *DATABASE)
    with edited(file) as whole:
        whole["complete"] = True
        whole["tests"][OTHER] = whole["tests"][TEST]

    ran = project.cli("history", "import", *DATABASE)

    assert ran.text == f"sent 1 run to {URL}"
    assert rows(project, "SELECT complete FROM ttnn_perf_run") == [(1,)]
    assert rows(project, "SELECT count(*) FROM ttnn_perf_observation") == [(2,)]


def test_shards_and_attempts_of_one_run_are_runs(histories: Histories, project: Project) -> None:
    (commit,) = histories.commits(1)
    for place in ({"shard": "1/2"}, {"shard": "2/2"}, {"shard": "2/2", "attempt": 2}):
        histories.record(commit, {TEST: 10.0}, day=0, id="night", environment=place)
    project.cli("history", "import", *DATABASE)
    found = rows(project, "SELECT run, shard, attempt FROM ttnn_perf_run ORDER BY 1, 2, 3")
    assert found == [("night", "1/2", 0), ("night", "2/2", 0), ("night", "2/2", 2)]
    assert len(document(project, "history", TEST, *DATABASE)["runs"]) == 3
    project.cli("history", "export", *DATABASE, "-o", "out")
    assert len(list((project.path / "out").iterdir())) == 3


def test_records_come_back_as_they_were(project: Project, histories: Histories) -> None:
    del histories
    write_latency(project, 10.0, 10.1)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-history", URL)
    project.pytest("--ttnn-perf", "--ttnn-perf-history", URL)
    runs = project.path / ".ttnn_perf" / "runs"
    before = {file.name: file.read_text() for file in runs.iterdir()}

    ran = project.cli("history", "export", *DATABASE, "-o", "out")
    assert ran.text == "wrote 2 run records to out"
    assert {file.name: file.read_text() for file in (project.path / "out").iterdir()} == before
    # Into the folder of records, where one is missing.
    next(runs.iterdir()).unlink()
    ran = project.cli("history", "export", *DATABASE)
    assert ran.text == "wrote 1 run record to .ttnn_perf/runs; 1 already there"
    assert {file.name: file.read_text() for file in runs.iterdir()} == before


def test_names_of_runs_are_no_paths(histories: Histories, project: Project) -> None:
    (commit,) = histories.commits(1)
    histories.record(commit, {TEST: 10.0}, day=0, id="../../escaped")
    histories.record(commit, {TEST: 10.0}, day=1, id="x" * 5000)
    project.cli("history", "import", *DATABASE)
    project.cli("history", "export", *DATABASE, "-o", "out")
    (first, second) = (project.path / "out").iterdir()
    assert first.name.startswith("run-")
    assert second.name.startswith("run-")
    assert not (project.path.parent / "escaped.json").exists()


def test_old_runs_are_removed(
    sent: Histories, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    del sent
    end = time.mktime(time.strptime("2026-09-18", "%Y-%m-%d"))
    monkeypatch.setattr(time, "time", lambda: end)
    words = ("history", "prune", "--keep", "10d", *DATABASE)
    before = (project.path / "perf.db").read_bytes()
    said = project.cli(*words, "--dry-run").text
    assert said == "would remove 7 runs; kept 9 runs"
    assert (project.path / "perf.db").read_bytes() == before
    assert project.cli(*words).text == said.replace("would remove", "removed")
    assert len(rows(project, "SELECT * FROM ttnn_perf_run")) == 9
    assert rows(project, "SELECT count(DISTINCT run_id) FROM ttnn_perf_observation") == [(9,)]


def test_a_run_is_sent_at_its_end_and_says_so(project: Project, histories: Histories) -> None:
    del histories
    write_latency(project, 10.0, 10.1)
    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-history", URL)
    assert (ran.code, ran.text.splitlines()[-2]) == (0, f"history: sent to {URL}")
    assert "history" not in project.pytest("--ttnn-perf", "--ttnn-perf-history", URL, "-q").text
    run = record_of(project)
    query = (
        "SELECT value, outcome, written FROM ttnn_perf_observation, ttnn_perf_run "
        f"WHERE run_id = id AND run = '{run['id']}'"
    )
    assert rows(project, query) == [(10.05, "WITHIN", 0)]
    assert URL not in json.dumps(run)


@pytest.mark.parametrize("given", ["file", "option over both"])
def test_where_the_url_may_stand(
    project: Project, histories: Histories, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    del histories
    write_latency(project, 10.0, 10.1)
    configure(project, 'history = "sqlite:///file.db"')
    if given != "file":
        monkeypatch.setenv("TTNN_PERF_HISTORY", "sqlite:///variable.db")
    option = ["--ttnn-perf-history=sqlite:///option.db"] if given.startswith("option") else []
    (project.path / "below").mkdir()
    monkeypatch.chdir(project.path)

    project.pytest("--ttnn-perf-update=new", *option)

    name = given.split(maxsplit=1)[0]
    assert {file.name for file in project.path.glob("*.db")} == {f"{name}.db"}
    words = ("--history", "sqlite:///option.db") if option else ()
    assert f"read from sqlite:///{name}.db" in project.cli("history", *words).text
    assert "read from" not in project.cli("history", "--runs", ".ttnn_perf/runs").text
    assert "already there" in project.cli("history", "import", *words).text


def test_an_empty_url_turns_it_off(
    project: Project, histories: Histories, monkeypatch: pytest.MonkeyPatch
) -> None:
    del histories
    monkeypatch.setenv("TTNN_PERF_HISTORY", "")  # a secret of CI that a fork does not see
    configure(project, 'history = "sqlite:///file.db"')
    write_latency(project, 10.0)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-history=")
    assert not (project.path / "file.db").exists()


def test_a_run_that_cannot_be_sent_keeps_its_verdict_and_says_how_to_send_it(
    project: Project, histories: Histories
) -> None:
    del histories
    write_latency(project, 10.0, 10.1)
    project.pytest("--ttnn-perf-update=new")
    (project.path / "perf.db").write_text("this is a diary, and has never been a database\n" * 99)

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-history", URL, "-q")

    assert ran.code == 0
    assert_golden("history_not_sent", ran.text)
    (project.path / "perf.db").unlink()
    (command,) = (
        line for line in " ".join(ran.text.split()).split("; ") if line.startswith("send it later")
    )
    words = command.partition(" ttnn-perf ")[2].split()[:5]
    words[2] = f".ttnn_perf/runs/{record_of(project)['id']}.json"  # which the harness replaces
    assert project.cli(*words).text == f"sent 1 run to {URL}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("perf.db", "found no URL of a database"),
        ("postgresql:/ci:hunter2@db/perf?a=b://c", "found no URL of a database"),
        ("mysql://ci:hunter2@db/perf", "found a URL that begins with mysql://"),
        ("sqlite:///nowhere/perf.db", "expected the folder"),
        ("postgresql://ci:hunter2@db", "found a URL whose parts cannot be read"),
        ("postgresql://ci:hunter2/x@db/perf", "found a URL whose parts cannot be read"),
        ("postgresql://ci@db/perf?password=hunter2", "password is a parameter"),
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_before_any_test_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch, url: str, says: str
) -> None:
    write_latency(project, 10.0)
    by_option = project.pytest("--ttnn-perf", "--ttnn-perf-history", url)
    of_command = project.cli("history", "import", "--history", url)
    monkeypatch.setenv("TTNN_PERF_HISTORY", url)
    by_variable = project.pytest("--ttnn-perf")
    assert says in refusal_of(by_option)
    assert says in refusal_of(by_variable)
    assert (of_command.code, says in of_command.errors) == (2, True)
    for ran in (by_option, by_variable, of_command):
        assert "hunter2" not in ran.text + ran.errors
    assert not (project.path / ".ttnn_perf").exists()


def test_tests_in_workers_are_told_no_url(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(
        test_model="""
            import os, sys
            def test_model(ttnn_perf, pytestconfig):
                ttnn_perf.record("latency", 1.0, unit="ms")
                assert not [word for word in (*sys.argv, *os.environ.values()) if "perf.db" in word]
                assert "passes" in pytestconfig.getini("cache_dir"), "nor the user's own cache"
        """
    )
    monkeypatch.setenv("TTNN_PERF_HISTORY", URL)
    options = (
        "--ttnn-perf-update=new",
        "--ttnn-perf-isolate=process",
        f"--ttnn-perf-history={URL}",
    )
    ran = project.pytest(*options)
    assert (ran.code, "history: sent to sqlite:///" in ran.text) == (0, True), ran.text


def test_a_password_in_a_file_is_refused(project: Project) -> None:
    write_latency(project, 10.0)
    configure(project, 'history = "postgresql://ci:hunter2@db/perf"')
    ran = project.pytest("--ttnn-perf")
    assert refusal_of(ran).endswith(
        "[tool.ttnn_perf] history: expected no password, which all who can read this file would "
        "know, found one: give the URL in TTNN_PERF_HISTORY instead"
    )
    assert "hunter2" not in ran.text + ran.errors


@pytest.mark.parametrize(
    ("missing", "url"), [("sqlalchemy", URL), ("psycopg", "postgresql://ci:hunter2@db/perf")]
)
def test_a_missing_extra_is_named_before_any_test_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch, missing: str, url: str
) -> None:
    write_latency(project, 10.0)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "pytest_ttnn_perf.core.settings.find_spec",
        lambda name: None if name == missing else find(name),
    )
    expected = (
        f"a history database needs {missing}, which is not installed: "
        "pip install 'pytest-ttnn-perf[history]'"
    )
    assert refusal_of(project.pytest("--ttnn-perf", "--ttnn-perf-history", url)) == expected
    assert expected in project.cli("trends", "--history", url).errors


def test_what_is_only_read_is_not_made(project: Project) -> None:
    commands = ("history", "trends", "history prune --keep 3d", "history export")
    nothing = f"ttnn-perf: {URL}: expected a database, found nothing"
    empty = "it has no history yet: send runs with ttnn-perf history import"
    for problem in (nothing, f"ttnn-perf: {URL}: {empty}"):
        for words in commands:
            ran = project.cli(*words.split(), *DATABASE)
            assert (ran.code, ran.text, ran.errors) == (3, "", problem)
        (project.path / "perf.db").touch()
    assert (project.path / "perf.db").read_bytes() == b""


def test_texts_of_others_are_kept_and_do_nothing(project: Project, tmp_path: Path) -> None:
    run, source = hostile_run(None, "m"), RecordFile(tmp_path)
    database = Database(database_url(URL, project.path))
    assert [send(database, run, source) for _ in range(2)] == [True, False]
    for shape in ("table", "csv"):
        text = project.cli("history", "--all-branches", *DATABASE, "--format", shape).text
        assert "\x1b" not in text
        assert "DROP TABLE" in text
    found = rows(project, "SELECT started_s, started_at FROM ttnn_perf_run")
    assert found == [(None, "yesterday")]
