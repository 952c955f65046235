"""``--ttnn-perf-warmup`` and ``warmup``: calls of tests that say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import CONFIG_FILES, configure, entry_of, refusal_of

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.fixture
def tests(project: Project) -> Project:
    """A project with a test that says nothing, one with a marker, one with an argument."""
    project.write(
        test_model="""
            import pytest

            def test_silent(ttnn_perf):
                ttnn_perf.measure(int)

            @pytest.mark.ttnn_perf(warmup=6)
            def test_marked(ttnn_perf):
                ttnn_perf.measure(int)

            @pytest.mark.ttnn_perf(warmup=6)
            def test_argued(ttnn_perf):
                ttnn_perf.measure(int, warmup=7)
        """
    )
    return project


def counted(project: Project) -> list[int]:
    """Return how many calls of the kind in question each test recorded."""
    names = ("test_silent", "test_marked", "test_argued")
    entries = (entry_of(project, f"test_model.py::{name}") for name in names)
    return [len(entry["metrics"]["wall_time"]["warmup"]) for entry in entries]


@pytest.mark.parametrize(
    ("arguments", "count"),
    [([], 3), (["--ttnn-perf-warmup=4"], 4), (["--ttnn-perf-warmup", "5"], 5)],
)
def test_nearest_word_wins(tests: Project, arguments: list[str], count: int) -> None:
    tests.pytest("--ttnn-perf", *arguments)

    assert counted(tests) == [count, 6, 7]


@pytest.mark.parametrize("file", CONFIG_FILES)
def test_warmup_has_its_twin(tests: Project, file: str) -> None:
    configure(tests, "warmup = 2", file=file)

    tests.pytest("--ttnn-perf")
    assert counted(tests) == [2, 6, 7]

    tests.pytest("--ttnn-perf", "--ttnn-perf-warmup=4")
    assert counted(tests) == [4, 6, 7]


@pytest.mark.parametrize("text", ["-1", "1.5", "many", ""])
def test_anything_but_a_count_is_refused(project: Project, text: str) -> None:
    ran = project.pytest("--ttnn-perf", f"--ttnn-perf-warmup={text}")

    assert refusal_of(ran) == (
        f"argument --ttnn-perf-warmup: expected a whole number of at least 0, found {text!r}"
    )


def test_no_warm_up_leaves_the_first_calls_among_the_samples(tests: Project) -> None:
    tests.pytest("--ttnn-perf", "--ttnn-perf-warmup=0", "-k", "silent")

    metrics = entry_of(tests, "test_model.py::test_silent")["metrics"]
    assert "warmup" not in metrics["wall_time"]
    first_two = metrics["first_call_time"]["samples"] + metrics["second_call_time"]["samples"]
    assert metrics["wall_time"]["samples"][:2] == first_two
