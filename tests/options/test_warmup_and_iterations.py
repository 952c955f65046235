"""``--ttnn-perf-warmup`` and ``--ttnn-perf-iterations``: how often tests that say nothing call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, entry_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: A test that says nothing, one with a marker, one with an argument.
TESTS = """
    import pytest

    def test_silent(ttnn_perf): ttnn_perf.measure(int)

    @pytest.mark.ttnn_perf({name}=6)
    def test_marked(ttnn_perf): ttnn_perf.measure(int)

    @pytest.mark.ttnn_perf({name}=6)
    def test_argued(ttnn_perf): ttnn_perf.measure(int, {name}=7)
"""


@pytest.mark.parametrize(
    ("name", "recorded", "default"), [("warmup", "warmup", 3), ("iterations", "samples", 10)]
)
def test_nearest_word_wins(project: Project, name: str, recorded: str, default: int) -> None:
    project.write(test_model=TESTS.format(name=name))
    for settings, arguments, expected in (
        ([], [], default),
        ([f"{name} = 2"], [], 2),
        ([f"{name} = 2"], [f"--ttnn-perf-{name}", "5"], 5),
    ):
        configure(project, *settings)
        project.pytest("--ttnn-perf", *arguments)
        tests = [
            entry_of(project, f"test_model.py::test_{n}") for n in ("silent", "marked", "argued")
        ]
        calls = [len(entry["metrics"]["wall_time"][recorded]) for entry in tests]
        assert calls == [expected, 6, 7]
