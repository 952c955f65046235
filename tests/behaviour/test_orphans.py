"""Renamed and removed tests are found at the end of a full run, and of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.project import Project

TESTS = """
    import pytest

    @pytest.mark.parametrize("n", [1, 8])
    def test_a(ttnn_perf, n):
        ttnn_perf.record("latency", [10.0, 10.1], unit="ms")

    def test_b(ttnn_perf):
        ttnn_perf.record("latency", [90.0, 90.1], unit="ms")

    def test_c(ttnn_perf):
        ttnn_perf.record("latency", [500.0, 501.0], unit="ms")
"""
AFTER = TESTS.replace("def test_a", "def test_aa").replace("def test_c", "def helper")


@pytest.fixture
def changed(project: Project) -> Project:
    """A project whose baselines were recorded, and two of whose three functions are gone."""
    project.write(test_model=TESTS)
    assert project.pytest("--ttnn-perf-update=new").code == 0
    project.write(test_model=AFTER)
    return project


def orphan_lines(text: str) -> list[str]:
    """Return the lines that are said of orphans."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("without a test: ")), None)
    if start is None:
        return []
    end = next(n for n, line in enumerate(lines) if n > start and not line.startswith("  "))
    return lines[start:end]


EXPECTED = [
    "without a test: 3 baselines of host-ARCH",
    *(f"  test_model.py::test_{name} is gone" for name in ("a[1]", "a[8]", "c")),
    "  keep those of renamed tests: ttnn-perf baseline rename OLD NEW",
    "  remove those that are gone: ttnn-perf baseline prune .ttnn_perf/runs/RUN-ID.json",
]


@pytest.mark.parametrize("selection", [["-k", "test"], ["test_model.py::test_b"], ["-x"]])
def test_a_selection_tells_nothing(changed: Project, selection: list[str]) -> None:
    assert orphan_lines(changed.pytest("--ttnn-perf", *selection).text) == []


def test_a_file_or_folder_that_was_collected_whole_counts(changed: Project) -> None:
    assert orphan_lines(changed.pytest("--ttnn-perf", "test_model.py").text) == EXPECTED
    (changed.path / "other").mkdir()
    (changed.path / "other" / "test_more.py").write_text("def test_more(ttnn_perf): pass")
    assert orphan_lines(changed.pytest("--ttnn-perf", "other").text) == []
