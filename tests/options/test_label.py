"""``--ttnn-perf-label`` and ``label``: the name of a run's change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import CONFIG_FILES, configure, record_of, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.mark.parametrize(
    ("arguments", "label"), [([], None), (["--ttnn-perf-label", "bfp8 weights"], "bfp8 weights")]
)
def test_label_is_part_of_the_record(
    project: Project, arguments: list[str], label: str | None
) -> None:
    write_latency(project, 12.5)

    project.pytest("--ttnn-perf", *arguments)

    assert record_of(project)["label"] == label


@pytest.mark.parametrize("file", CONFIG_FILES)
def test_label_has_its_twin(project: Project, file: str) -> None:
    write_latency(project, 12.5)
    configure(project, 'label = "nightly"', file=file)

    project.pytest("--ttnn-perf")
    assert record_of(project)["label"] == "nightly"

    project.pytest("--ttnn-perf", "--ttnn-perf-label=mine")
    assert record_of(project)["label"] == "mine"
