"""``ttnn-perf baseline prune``: what is gone goes, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.baselines import T3K, ops, stored, times

if TYPE_CHECKING:
    from typing import Any

    from tests.harness.baselines import Desk

HERE, GONE = "test_a.py::test_here", "test_a.py::test_gone"
ALL: dict[str, Any] = {"places": [""], "others": []}


def test_what_a_full_run_did_not_collect_is_removed_with_its_table(desk: Desk) -> None:
    desk.store(HERE, stored(times(10.0), table=ops("Matmul")))
    desk.store(GONE, stored(times(5.0), table=ops("Conv2d")))
    desk.store("test_b.py::test_file_is_gone", stored(times(2.0)))
    desk.record(tests={HERE: [10.0]}, collected=ALL)
    before = desk.files()
    dry = desk.run("prune", "run.json", "--dry-run")
    assert dry.code == 0
    assert "would remove baselines/wormhole_b0-n150-1x1/test_b.json" in dry.text
    assert desk.files() == before
    ran = desk.run("prune", "run.json")
    assert (ran.code, ran.errors) == (0, "")
    assert sorted(desk.files()) == [
        "wormhole_b0-n150-1x1/test_a.json",
        "wormhole_b0-n150-1x1/test_a.ops/test_here.csv",
    ]
    assert (desk.sessions(HERE), desk.sessions(GONE)) == ([10.0], [])
    assert desk.run("prune", "run.json").text == "nothing to write"


@pytest.mark.parametrize(
    "collected",
    [
        {"places": [""], "others": [GONE]},  # skipped, or without its marker
        {"places": [""], "others": ["test_a.py"]},  # its file could not be collected
        {"places": ["models"], "others": []},  # another folder was collected
    ],
)
def test_what_may_still_be_there_stays(desk: Desk, collected: dict[str, Any]) -> None:
    desk.store(GONE, stored(times(5.0)))
    desk.record(tests={HERE: [10.0]}, collected=collected)
    assert desk.run("prune", "run.json").text.endswith("nothing to write")
    assert desk.sessions(GONE) == [5.0]


def test_other_hardware_loses_only_functions_that_are_gone(desk: Desk) -> None:
    """Parameters may depend on the device that is found while tests are collected."""
    meshes = "test_a.py::test_here[2x4]"
    desk.store(meshes, stored(times(10.0)), T3K)
    desk.store(GONE, stored(times(5.0)), T3K)
    desk.record(tests={f"{HERE}[1x1]": [10.0]}, collected=ALL)
    ran = desk.run("prune", "run.json")
    assert ran.code == 0
    assert desk.find(meshes, T3K) is not None
    assert desk.find(GONE, T3K) is None


def test_a_record_must_be_of_a_full_run(desk: Desk) -> None:
    desk.store(HERE, stored(times(10.0)))
    desk.store(GONE, stored(times(5.0)))
    desk.record(tests={HERE: [10.0]})
    ran = desk.run("prune", "run.json")
    assert (ran.code, ran.text) == (2, "")
    assert "run.json does not say that it has all tests" in ran.errors
    assert desk.sessions(GONE) == [5.0]
    assert desk.run("prune", "run.json", "--full").code == 0
    assert desk.sessions(GONE) == []
    desk.record(tests={HERE: [10.0]}, complete=False)
    desk.store(HERE, stored(times(5.0)))
    assert "run.json was cut short" in desk.run("prune", "run.json", "--full").errors
