"""The whole output of ``merge``: shards and systems as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

SHAPES = ["table", "csv", "markdown", "gitlab"]


def record(
    project: Project,
    file: str,
    *,
    key: str = "n150",
    shard: str | None = None,
    **latencies: float,
) -> None:
    """Write the record of a shard that ran some tests, each with one latency in ms."""
    arch, board, mesh = "wormhole_b0", key, "1x1"
    tests = {
        f"test_model.py::{test}": {
            "metrics": {"latency": {"samples": [value], "unit": "ms", "kind": "time"}}
        }
        for test, value in latencies.items()
    }
    hardware = {"arch": arch, "board": board, "mesh": mesh}
    environment = {"environment": {"shard": shard}} if shard else {}
    document = {"format": 1, "hardware": hardware, **environment, "complete": True, "tests": tests}
    (project.path / file).write_text(json.dumps(document))


@pytest.fixture
def sharded(project: Project) -> Project:
    """Return a project with baselines of two systems, of 10 ms each."""
    for key in ("n150", "n300"):
        tests = {
            test: {
                "accepted": {"at": "2026-01-01T00:00:00Z"},
                "metrics": {
                    "latency": {
                        "unit": "ms",
                        "kind": "time",
                        "better": "lower",
                        "source": "wall",
                        "sessions": [[10.0, 0.0, 1]] * 3,
                    }
                },
            }
            for test in ("test_a", "test_b", "test_c")
        }
        file = project.path / "baselines" / f"wormhole_b0-{key}-1x1" / "test_model.json"
        file.parent.mkdir(parents=True)
        hardware = {"arch": "wormhole_b0", "board": key, "mesh": "1x1"}
        document = {"format": 1, "hardware": hardware, "tests": tests}
        file.write_text(json.dumps(document))
    return project


@pytest.mark.parametrize("shape", SHAPES)
def test_shards_of_two_systems(sharded: Project, shape: str) -> None:
    record(sharded, "one.json", test_a=10.0)
    record(sharded, "two.json", test_b=10.1, test_c=9.9)
    record(sharded, "three.json", key="n300", test_a=14.0)
    ran = sharded.cli("merge", "one.json", "two.json", "three.json", "--format", shape)
    assert (ran.code, ran.errors) == (1, "")
    assert_golden(f"merge_{shape}", ran.text)


def test_copies_and_tries_of_a_shard_are_one_shard(sharded: Project) -> None:
    record(sharded, "one.json", shard="1/2", test_a=10.0, test_b=10.0)
    copy = {**json.loads((sharded.path / "one.json").read_text()), "id": "run-1"}
    for file in ("one.json", "copy.json"):
        (sharded.path / file).write_text(json.dumps(copy))
    record(sharded, "again.json", shard="1/2", test_b=10.0)
    record(sharded, "two.json", shard="2/2", test_b=10.0, test_c=10.0)
    record(sharded, "board.json", key="n300", shard="1/2", test_a=10.0)

    def merged(*files: str, expect: int) -> tuple[int, str]:
        ran = sharded.cli("merge", *files, "--expect", str(expect))
        return ran.code, ran.text.splitlines()[-2]

    found = "failed: expected 2 shards, found 1; "
    assert merged("one.json", "copy.json", expect=2) == (1, f"{found}copy.json is one.json again")
    assert merged("one.json", "again.json", expect=2) == (1, f"{found}again.json is one.json again")
    assert merged("one.json", "again.json", "two.json", expect=2)[0] == 0
    assert merged("one.json", "two.json", "board.json", expect=3)[0] == 0
    record(sharded, "some.json", test_a=10.0, test_b=10.0)
    record(sharded, "others.json", test_b=10.0, test_c=10.0)
    assert merged("some.json", "others.json", expect=2)[0] == 0, "one test is in both"


def test_a_test_that_ran_twice_is_judged_twice(sharded: Project) -> None:
    record(sharded, "bad.json", test_a=14.0)
    record(sharded, "good.json", test_a=10.0)

    for files in (("bad.json", "good.json"), ("good.json", "bad.json")):
        ran = sharded.cli("merge", *files, "--format", "json")

        runs = json.loads(ran.text)["runs"]
        assert ran.code == 1
        assert [run["records"] for run in runs] == [[file] for file in files]
        assert sorted(run["failed"] for run in runs) == [False, True]


def test_one_test_on_two_systems_has_two_troubles(sharded: Project) -> None:
    record(sharded, "one.json", test_a=14.0)
    record(sharded, "two.json", key="n300", test_a=14.0)

    issues = json.loads(sharded.cli("merge", "one.json", "two.json", "--format", "gitlab").text)

    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 2


def test_a_record_that_is_named_twice_is_refused(sharded: Project) -> None:
    record(sharded, "one.json", test_a=10.0)

    ran = sharded.cli("merge", "one.json", "one.json", "--expect", "2")

    complaint = "ttnn-perf: one.json is named twice: it would count as two records"
    assert (ran.code, ran.text, ran.errors) == (2, "", complaint)
