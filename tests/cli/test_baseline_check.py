"""``ttnn-perf baseline check``: files are valid, and what got worse in them has a reason."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from tests.harness.baselines import ops, stored, times
from tests.harness.repository import Repository

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.baseline import TestBaseline
    from tests.harness.baselines import Desk

TEST = "test_m.py::test_a"
FILE = "baselines/wormhole_b0-n150-1x1/test_m.json"


def rate(*per_second: float, since: int = 0) -> MetricBaseline:
    """Return a stored rate: more is better."""
    sessions = tuple(Session(each, each / 1000, 10, f"run-{each}") for each in per_second)
    return MetricBaseline(
        Metric("tokens", "tok/s", Better.HIGHER, Kind.THROUGHPUT), sessions, since
    )


BEFORE = stored(times(10.0, 10.2), times(5.0, name="ttft"))
WITH_REASON = Acceptance("2026-11-16T10:00:00Z", "aaa1111", "float32 sums")
WITHOUT = Acceptance("2026-11-16T10:00:00Z", "aaa1111")
REMEDY = '  accept: ttnn-perf baseline accept RUN.json --reason "why"'

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def committed(desk: Desk) -> Desk:
    """Return a repository with one baseline."""
    repository = Repository(desk)
    repository.git("init", "-q", "-b", "main")
    desk.store(TEST, BEFORE)
    repository.commit("first")
    return desk


TTFT = times(5.0, name="ttft")
WORSE = times(10.0, 10.2, 12.0, since=2)


@pytest.mark.parametrize(
    "after",
    [
        BEFORE,
        stored(times(10.0, 10.2, 10.9), TTFT),
        stored(times(10.0, 10.2, 9.0, since=2), TTFT, accepted=WITHOUT),
        stored(WORSE, TTFT, accepted=WITH_REASON),
        stored(times(10.0, 10.2), accepted=WITH_REASON),
        stored(times(10.0, 10.2), TTFT, times(7.0, name="prefill"), accepted=WITHOUT),
    ],
    ids=["same", "a session", "better", "worse, and why", "gone, and why", "new metric"],
)
def test_what_the_commands_write_is_fine(committed: Desk, after: TestBaseline) -> None:
    committed.store(TEST, after)

    ran = committed.run("check")

    assert (ran.code, ran.text) == (0, "1 file checked, 0 problems")


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        (stored(WORSE, TTFT, accepted=WITHOUT),
         "latency is worse than in the last commit, without a reason: 10.10 ms → 12.00 ms"),
        # The reason is that of what was accepted before.
        (stored(times(13.0), TTFT),
         "latency is worse than in the last commit, without a reason: 10.10 ms → 13.00 ms"),
        (stored(times(10.0, 10.2)), "ttft is gone from the baseline, without a reason"),
    ],
    ids=["accepted without", "edited by hand", "gone"],
)  # fmt: skip
def test_what_is_worse_needs_a_reason_of_its_own(
    committed: Desk, after: TestBaseline, problem: str
) -> None:
    committed.store(TEST, after)

    for words in ((), (FILE,)):
        ran = committed.run("check", *words)
        assert (ran.code, ran.text.splitlines()) == (
            1,
            [f"{TEST}: {problem}", REMEDY, "1 file checked, 1 problem"],
        )
    document = json.loads(committed.run("check", "--format", "json").text)
    (found,) = document["problems"]
    assert document["files"] == 1
    assert found.pop("file").endswith(FILE)
    assert found == {"test": TEST, "problem": problem}


def test_a_rate_is_worse_where_it_falls(committed: Desk) -> None:
    committed.store(TEST, stored(times(10.0, 10.2), TTFT, rate(20.0)))
    Repository(committed).commit("with a rate")

    committed.store(TEST, stored(times(10.0, 10.2), TTFT, rate(20.0, 24.0, since=1)))
    assert committed.run("check").code == 0
    committed.store(TEST, stored(times(10.0, 10.2), TTFT, rate(20.0, 16.0, since=1)))
    ran = committed.run("check")
    assert (ran.code, ran.text.splitlines()[0]) == (
        1,
        f"{TEST}: tokens is worse than in the last commit, without a reason: "
        "20.00 tok/s → 16.00 tok/s",
    )


def test_an_op_table_that_is_missing_is_found(committed: Desk) -> None:
    committed.store(TEST, stored(times(10.0, 10.2), TTFT, table=ops("Matmul")))
    assert committed.run("check").code == 0
    (table,) = committed.root.rglob("*.csv")
    table.write_text("not a table\n")

    ran = committed.run("check")

    assert ran.code == 1
    assert "test_a.csv: " in ran.text

    (committed.path / FILE).write_text("<<<<<<< HEAD\n{}\n")
    ran = committed.run("check", FILE)
    assert ran.code == 1
    assert ran.text.splitlines()[0].endswith("test_m.json: a merge conflict is not resolved here")


def test_new_and_deleted_files_and_no_git(desk: Desk) -> None:
    desk.store(TEST, stored(WORSE, accepted=WITHOUT))
    ran = desk.run("check", FILE, "baselines/wormhole_b0-n150-1x1/test_gone.json")
    said = "1 file checked, 0 problems; no git here: nothing to compare them with"
    assert (ran.code, ran.text) == (0, said)
