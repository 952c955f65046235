"""What an update does to the file: the lines of the tests that ran, and no others."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.harness.project import Project

TESTS = """
    import pytest

    @pytest.mark.parametrize("case", ["a", "b", "c"])
    def test_model(ttnn_perf, case):
        ttnn_perf.record("latency", {milliseconds}, unit="ms")
        ttnn_perf.record("ops", 7, kind="count")
"""


def test_one_updated_test_changes_its_own_lines(project: Project) -> None:
    project.write(test_model=TESTS.format(milliseconds=12.5))
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-reason=first")
    before = project.baseline().read_text().splitlines()
    project.write(test_model=TESTS.format(milliseconds=6.5))

    project.pytest("-k", "b", "--ttnn-perf-update")

    after = project.baseline().read_text().splitlines()
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    starts = [n for n, line in enumerate(after) if line.startswith('    "test_model[')]
    own = after[starts[1] : starts[2]]
    assert {line[2:] for line in changed if line[0] == "+"} <= set(own)
    assert sum(line.strip("+ ").startswith("[6.5, 0, 1") for line in changed) == 1
    assert sum('"since": 1' in line for line in changed) == 1
