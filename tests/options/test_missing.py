"""``--ttnn-perf-missing`` and ``missing``: tests that there is nothing to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    outcomes,
    write_latency,
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
