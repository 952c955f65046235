"""``ttnn-perf baseline forget``: the baselines of named tests go, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.baselines import N150, T3K, ops, stored, times

if TYPE_CHECKING:
    from tests.harness.baselines import Desk
    from tests.harness.project import Project

A, B = "test_a.py::test_a", "test_a.py::test_b[4]"


def test_a_test_is_forgotten_with_its_table_and_the_others_stay(desk: Desk) -> None:
    desk.store(A, stored(times(10.0), table=ops("Matmul")))
    desk.store(B, stored(times(5.0), table=ops("Conv2d")))
    before = desk.files()
    dry = desk.run("forget", "--dry-run", "--", B)
    assert dry.text.splitlines()[-1] == "1 test, 1 metric; dry run: nothing is written"
    assert desk.files() == before

    ran = desk.run("forget", "--", B)

    assert (ran.code, ran.errors) == (0, "")
    assert (desk.sessions(A), desk.sessions(B)) == ([10.0], [])
    assert sorted(desk.files()) == [
        "wormhole_b0-n150-1x1/test_a.json",
        "wormhole_b0-n150-1x1/test_a.ops/test_a.csv",
    ]
    again = desk.run("forget", "--", B)
    assert again.code == 2
    assert again.errors.endswith(f"baselines; near to it: {A}")


def test_several_keys_and_no_tests_are_refused(desk: Desk) -> None:
    for hardware in (N150, T3K):
        desk.store(A, stored(times(10.0)), hardware)

    ran = desk.run("forget", A)

    assert ran.code == 2
    assert f"{A} has baselines on {N150.key}, {T3K.key}: say which with --key KEY" in ran.errors
    assert desk.run("forget", A, "--key", T3K.key).code == 0
    assert desk.sessions(A) == [10.0]
    assert list(desk.files()) == ["wormhole_b0-n150-1x1/test_a.json"]
    assert "name the tests to forget: ttnn-perf baseline forget TEST" in desk.run("forget").errors


def test_one_metric_is_forgotten_as_the_failure_says(project: Project) -> None:
    both = """
        def test_model(ttnn_perf):
            ttnn_perf.record("latency", 12.5, unit="ms")
            ttnn_perf.record("reshards", 3, kind="count")
    """
    project.write(test_model=both)
    assert project.pytest("--ttnn-perf-update=new").code == 0
    project.write(test_model=both.replace('ttnn_perf.record("reshards", 3, kind="count")', "pass"))
    failed = project.pytest("--ttnn-perf")
    assert failed.code == 1
    (line,) = {text for text in failed.text.splitlines() if "forget it" in text}
    command = line.partition("forget it: ttnn-perf ")[2].split()
    assert command == [
        "baseline",
        "forget",
        "--metric",
        "reshards",
        "--",
        "test_model.py::test_model",
    ]

    assert project.cli(*command).code == 0

    assert list(project.stored()["test_model"]["metrics"]) == ["latency"]
    assert project.pytest("--ttnn-perf").code == 0
