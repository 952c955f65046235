"""``--ttnn-perf-missing`` and ``missing``: tests that there is nothing to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    failure_of,
    metric,
    outcomes,
    write_latency,
    write_model,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

TEST = "test_model.py::test_model"
SENTENCE = "latency 12.50 ms has no baseline: the test is new"


@pytest.mark.parametrize(
    ("arguments", "counts", "said"),
    [
        ([], "1 failed", True),
        (["--ttnn-perf-missing=warn"], "1 passed", True),
        (["--ttnn-perf-missing", "ignore"], "1 passed", False),
    ],
    ids=["default", "warn", "ignore"],
)
def test_test_without_a_baseline(
    project: Project, arguments: list[str], counts: str, said: bool
) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf", *arguments)

    assert counts_of(ran) == counts
    assert outcomes(project) == {"latency": "NO_BASELINE"}
    assert "metrics: 1 NO_BASELINE" in ran.text
    failure, summary = f"NO_BASELINE: {SENTENCE}", f"NO_BASELINE {TEST}: {SENTENCE}"
    lines = ran.text.splitlines()
    assert (failure in lines, summary in lines) == (
        counts == "1 failed",
        said and failure not in lines,
    )


def test_test_that_cannot_be_compared(project: Project) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    other = project.baseline().parent
    other.rename(other.with_name("wormhole_b0-n150-1x1"))
    file = project.baseline(key="wormhole_b0-n150-1x1")
    hardware = '"hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"}'
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], f"  {hardware},", *lines[3:]]))

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=warn")

    assert counts_of(ran) == "1 passed"
    assert (
        f"NOT_COMPARABLE {TEST}: latency 12.50 ms has no baseline on this "
        "hardware, only on: wormhole_b0-n150-1x1"
    ) in ran.text.splitlines()


def test_what_is_wrong_fails_even_when_missing_is_ignored(project: Project) -> None:
    write_model(project, slow=metric(12.5), broken=metric(12.5), other=metric(12.5))
    project.pytest("--ttnn-perf-update=new")
    broken = metric(12.5, float("nan"))
    write_model(project, slow=metric(25.5), broken=broken, other=metric(12500, unit="us"))

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "1 failed"
    lines = [line for line in failure_of(ran).splitlines() if line[0] != " "]
    assert lines == [
        "REGRESSED: slow 25.50 ms, baseline 12.50 ms: 104.0 % slower, limit 9.1 % "
        "(1 sample against 1 session; sample noise assumed; one run seen)",
        "NO_DATA: broken is not a finite number: sample 2 of 2",
        "NOT_COMPARABLE: other 12.50 ms is defined differently: unit is 'us', in the baseline 'ms'",
    ]
    assert all(ran.text.splitlines().count(line) == 1 for line in lines), "told once"
