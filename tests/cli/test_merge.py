"""``ttnn-perf merge``: shards and systems as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from tests.harness.baselines import N150, stored, times
from tests.harness.golden import assert_golden
from tests.harness.project import clean, run_command

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

N300 = Hardware("wormhole_b0", "n300", "1x1")


def record(
    desk: Desk, file: str, *, board: str = "n150", shard: str | None = None, **latencies: float
) -> None:
    """Write the record of a shard that ran some tests, each with one latency in ms."""
    more: dict[str, Any] = {"environment": {"shard": shard} if shard else {}}
    hardware = {"arch": "wormhole_b0", "board": board, "mesh": "1x1"}
    tests = {f"test_model.py::{test}": [value] for test, value in latencies.items()}
    desk.record(file, tests=tests, hardware=hardware, complete=True, id=None, **more)


@pytest.fixture
def sharded(desk: Desk) -> Desk:
    """Return a project with baselines of two systems, of 10 ms each."""
    for hardware in (N150, N300):
        for test in ("test_a", "test_b", "test_c"):
            desk.store(f"test_model.py::{test}", stored(times(10.0, 10.0, 10.0)), hardware)
    return desk


@pytest.mark.parametrize("shape", ["table", "markdown"])
def test_shards_of_two_systems(sharded: Desk, shape: str) -> None:
    record(sharded, "one.json", test_a=10.0)
    record(sharded, "two.json", test_b=10.1, test_c=9.9)
    record(sharded, "three.json", board="n300", test_a=14.0)
    ran = run_command("merge", "one.json", "two.json", "three.json", "--format", shape)
    assert (ran.code, ran.errors) == (1, "")
    assert_golden(f"merge_{shape}", clean(ran.text))


def test_copies_and_tries_of_a_shard_are_one_shard(sharded: Desk) -> None:
    record(sharded, "one.json", shard="1/2", test_a=10.0, test_b=10.0)
    copy = {**json.loads((sharded.path / "one.json").read_text()), "id": "run-1"}
    for file in ("one.json", "copy.json"):
        (sharded.path / file).write_text(json.dumps(copy))
    record(sharded, "again.json", shard="1/2", test_b=10.0)
    record(sharded, "two.json", shard="2/2", test_b=10.0, test_c=10.0)
    record(sharded, "board.json", board="n300", shard="1/2", test_a=10.0)

    def merged(*files: str, expect: int) -> tuple[int, str]:
        ran = run_command("merge", *files, "--expect", str(expect))
        return ran.code, ran.text.splitlines()[-2]

    found = "failed: expected 2 shards, found 1; "
    assert merged("one.json", "copy.json", expect=2) == (1, f"{found}copy.json is one.json again")
    assert merged("one.json", "again.json", expect=2) == (1, f"{found}again.json is one.json again")
    assert merged("one.json", "again.json", "two.json", expect=2)[0] == 0
    assert merged("one.json", "two.json", "board.json", expect=3)[0] == 0
    record(sharded, "some.json", test_a=10.0, test_b=10.0)
    record(sharded, "others.json", test_b=10.0, test_c=10.0)
    assert merged("some.json", "others.json", expect=2)[0] == 0, "one test is in both"
    twice = run_command("merge", "one.json", "one.json", "--expect", "2")
    assert twice.code == 2
    assert "one.json is named twice: it would count as two records" in twice.errors


def test_a_test_that_ran_twice_is_judged_twice(sharded: Desk) -> None:
    record(sharded, "bad.json", test_a=14.0)
    record(sharded, "good.json", test_a=10.0)

    for files in (("bad.json", "good.json"), ("good.json", "bad.json")):
        ran = run_command("merge", *files, "--format", "json")

        runs = json.loads(ran.text)["runs"]
        assert ran.code == 1
        assert [run["records"] for run in runs] == [[file] for file in files]
        assert sorted(run["failed"] for run in runs) == [False, True]


def test_one_test_on_two_systems_has_two_troubles(sharded: Desk) -> None:
    record(sharded, "one.json", test_a=14.0)
    record(sharded, "two.json", board="n300", test_a=14.0)

    issues = json.loads(run_command("merge", "one.json", "two.json", "--format", "gitlab").text)

    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 2
