"""``--ttnn-perf-warmup`` and ``--ttnn-perf-iterations``: how often tests that say nothing call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, entry_of

if TYPE_CHECKING:
    from tests.harness.project import Project


@dataclass(frozen=True, slots=True)
class Count:
    """One of the two options; ``recorded`` is where the record keeps such calls."""

    name: str
    default: int
    least: int
    recorded: str

    def write_tests(self, project: Project) -> None:
        """Write a test that says nothing, one with a marker, one with an argument."""
        project.write(
            test_model=f"""
                import pytest

                def test_silent(ttnn_perf):
                    ttnn_perf.measure(int)

                @pytest.mark.ttnn_perf({self.name}=6)
                def test_marked(ttnn_perf):
                    ttnn_perf.measure(int)

                @pytest.mark.ttnn_perf({self.name}=6)
                def test_argued(ttnn_perf):
                    ttnn_perf.measure(int, {self.name}=7)
            """
        )

    def calls(self, project: Project) -> list[int]:
        """Return how many such calls each test recorded in the newest run."""
        names = ("test_silent", "test_marked", "test_argued")
        entries = (entry_of(project, f"test_model.py::{name}") for name in names)
        return [len(entry["metrics"]["wall_time"][self.recorded]) for entry in entries]


WARMUP = Count("warmup", default=3, least=0, recorded="warmup")
ITERATIONS = Count("iterations", default=10, least=1, recorded="samples")

both = pytest.mark.parametrize("count", [WARMUP, ITERATIONS], ids=lambda count: count.name)


@both
def test_nearest_word_wins(project: Project, count: Count) -> None:
    count.write_tests(project)
    for arguments, expected in (
        ([], count.default),
        ([f"--ttnn-perf-{count.name}=4"], 4),
        ([f"--ttnn-perf-{count.name}", "5"], 5),
    ):
        project.pytest("--ttnn-perf", *arguments)
        assert count.calls(project) == [expected, 6, 7]


@both
def test_twin(project: Project, count: Count) -> None:
    count.write_tests(project)
    configure(project, f"{count.name} = 2")

    project.pytest("--ttnn-perf")
    assert count.calls(project) == [2, 6, 7]

    project.pytest("--ttnn-perf", f"--ttnn-perf-{count.name}=4")
    assert count.calls(project) == [4, 6, 7]


def test_no_warm_up_leaves_the_first_calls_among_the_samples(project: Project) -> None:
    WARMUP.write_tests(project)

    project.pytest("--ttnn-perf", "--ttnn-perf-warmup=0", "-k", "silent")

    metrics = entry_of(project, "test_model.py::test_silent")["metrics"]
    assert "warmup" not in metrics["wall_time"]
    first_two = metrics["first_call_time"]["samples"] + metrics["second_call_time"]["samples"]
    assert metrics["wall_time"]["samples"][:2] == first_two
