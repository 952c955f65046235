"""``batch`` of the marker: what the checklist makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, failure_of

if TYPE_CHECKING:
    from tests.harness.project import Project


def write(project: Project, marker: str) -> None:
    """Write a test whose batch four devices share."""
    project.write(
        test_model=f"""
            import pytest

            @pytest.mark.ttnn_perf({marker})
            def test_model(ttnn_perf):
                ttnn_perf.facts(data_parallel=4)
                ttnn_perf.record("latency", 12.5, unit="ms")
        """
    )


def test_a_batch_that_leaves_samples_over_fails(project: Project) -> None:
    write(project, "batch=10")
    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")
    assert counts_of(ran) == "1 failed"
    assert "TTP701 batch-not-divisible" in failure_of(ran)
    assert "a batch of 10 among 4 devices leaves 2 over" in failure_of(ran)


@pytest.mark.parametrize("marker", ["batch=8", ""], ids=["divides", "not known"])
def test_a_batch_that_divides_or_is_not_known_does_not(project: Project, marker: str) -> None:
    write(project, marker)
    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")
    assert counts_of(ran) == "1 passed"


def test_another_batch_is_no_other_configuration(project: Project) -> None:
    write(project, "batch=8")
    project.pytest("--ttnn-perf-update=new")
    write(project, "batch=16")
    assert counts_of(project.pytest("--ttnn-perf")) == "1 passed"
