"""``--ttnn-perf-update``: how it is asked for, with its reason, and what no form of it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    stored_metric,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--ttnn-perf-update"], "improved"),
        (["--ttnn-perf-update", "-q", "test_model.py"], "improved"),
        (["--ttnn-perf-update", "new", "test_model.py"], "new"),
        (["--ttnn-perf-update=all", "--ttnn-perf-reason=because"], "all"),
    ],
    ids=" ".join,
)
def test_ways_to_ask(project: Project, arguments: list[str], what: str) -> None:
    write_latency(project, 12.5)

    ran = project.pytest(*arguments, "-v")

    assert counts_of(ran) == "1 passed"
    assert f", update {what}, " in ran.text
    assert stored_metric(project)["sessions"] == [[12.5, 0, 1]]
