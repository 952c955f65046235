"""``--ttnn-perf-json`` and ``json``: the run record at a place of the user's choice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.behaviour.model import (
    MODEL,
    counts_of,
    record_of,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_failing_run_leaves_the_same_record_in_both_places(project: Project) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-json", "out/run.json")

    assert ran.code == 1
    document = json.loads((project.path / "out/run.json").read_text())
    assert document == record_of(project)
    assert document["tests"][MODEL]["metrics"]["latency"] == {
        "better": "lower",
        "confirmations": [],
        "kind": "time",
        "samples": [12.5],
        "source": "wall",
        "unit": "ms",
    }
    verdict = document["tests"][MODEL]["verdicts"]["latency"]
    assert verdict["sentence"] == "latency 12.50 ms has no baseline: the test is new"


def test_record_that_could_not_be_written_fails_the_run(project: Project) -> None:
    write_latency(project, 12.5)
    project.write(
        conftest="""
            import pathlib

            def pytest_runtest_teardown():
                pathlib.Path("run.json").mkdir()
        """
    )

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert (ran.code, counts_of(ran)) == (1, "1 passed")
    line = f"not written: {project.path}/run.json: cannot write: Is a directory"
    assert line in ran.text.splitlines()
