"""``--ttnn-perf-label`` and ``label``: the name of a run's change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import configure, record_of, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_label_has_its_twin(project: Project) -> None:
    write_latency(project, 12.5)
    configure(project, 'label = "nightly"')

    project.pytest("--ttnn-perf")
    assert record_of(project)["label"] == "nightly"

    project.pytest("--ttnn-perf", "--ttnn-perf-label=mine")
    assert record_of(project)["label"] == "mine"
