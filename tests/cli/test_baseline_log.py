"""``ttnn-perf baseline list --log``: who accepted what and why."""

from __future__ import annotations

import csv
import io
import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance
from tests.harness.baselines import stored, times
from tests.harness.repository import Repository

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

A, B = "test_m.py::test_a", "test_m.py::test_b"
LATER = Acceptance("2026-11-16T10:00:00Z", "aaa1111", "bfp8 weights")
LAST = Acceptance("2026-11-17T10:00:00Z", "bbb2222", "float32 sums")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def test_without_git_the_file_tells(desk: Desk) -> None:
    desk.store(A, stored(times(10.0), accepted=LATER))
    ran = desk.run("list", "--log")
    assert ran.code == 0
    assert "bfp8 weights" in ran.text
    assert ran.text.endswith("1 accept; no git here: only the last of each test is known")


@pytest.fixture
def told(desk: Desk) -> Desk:
    """A repository with three accepts of A, the last of them in no commit, and one of B."""
    repository = Repository(desk)
    repository.git("init", "-q", "-b", "main")
    desk.store(A, stored(times(10.0)))
    repository.commit("first")
    desk.store(A, stored(times(10.0, 10.1)))  # a session more is no accept
    repository.commit("one session more")
    desk.store(A, stored(times(10.0, 10.1, 12.0, since=2), accepted=LATER))
    desk.store(B, stored(times(5.0), accepted=LATER))
    repository.commit("bfp8")
    desk.store(A, stored(times(10.0, 10.1, 11.0, since=2), accepted=LAST))
    return desk


def test_git_tells_who_and_what_was_before(told: Desk) -> None:
    document = json.loads(told.run("list", "--log", A, "--format", "json").text)
    rows = [
        (row["accepted"], row["commit"], row["reason"], row["author"], row["values"])
        for row in document["accepts"]
    ]
    assert rows == [
        (LAST.at, "bbb2222", "float32 sums", None, "latency 11.00 ms"),
        (LATER.at, "aaa1111", "bfp8 weights", "Ada", "latency 12.00 ms"),
        ("2026-11-15T10:00:00Z", "abc1234", "first", "Ada", "latency 10.00 ms"),
    ]
    assert [row["committed"] for row in document["accepts"]][1:] == [
        "2026-11-17T12:00:00+00:00"
    ] * 2


def test_all_tests_and_a_table(told: Desk) -> None:
    rows = list(csv.DictReader(io.StringIO(told.run("list", "--log", "--format", "csv").text)))
    assert [row["test"] for row in rows] == [A, A, A, B]
    assert told.run("list", "--log").text.splitlines()[-1] == "4 accepts"


def test_a_version_that_cannot_be_read_tells_nothing(told: Desk) -> None:
    file = told.root / "wormhole_b0-n150-1x1" / "test_m.json"
    text = file.read_text()
    file.write_text("<<<<<<<\n")
    Repository(told).commit("a mistake")
    file.write_text(text)
    assert len(json.loads(told.run("list", "--log", A, "--format", "json").text)["accepts"]) == 3


def test_mistakes_are_named(told: Desk) -> None:
    ran = told.run("list", "--log", "test_m.py::test_c")
    assert (ran.code, ran.text) == (2, "")
    assert "test_m.py::test_c names no test in" in ran.errors
    assert "ttnn-perf baseline list --log test_m.py" in told.run("list", "test_m.py").errors
