"""``facts``: what the author states of the configuration decides what may be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import failure_of

if TYPE_CHECKING:
    from tests.harness.project import Project


def state(project: Project, facts: str) -> None:
    """Let the test state these keyword arguments from now on."""
    if not (project.path / "test_model.py").exists():
        project.write(
            test_model="""
                from pathlib import Path

                def test_model(ttnn_perf):
                    ttnn_perf.record("latency", 12.5, unit="ms")
                    text = Path(__file__).with_name("facts").read_text()
                    ttnn_perf.facts(**eval(f"dict({text})"))
            """
        )
    (project.path / "facts").write_text(facts)


@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        ("use_trace=True", "use_trace=False", "use_trace is False, in the baseline True"),
        ("level=1, queues=1", "level=1, queues=2", "queues is 2, in the baseline 1"),
        ("", "use_trace=True", "use_trace is True, in the baseline None"),
        ("use_trace=True", "", "use_trace is None, in the baseline True"),
    ],
)
def test_other_configuration_is_not_comparable_and_names_the_field(
    project: Project, before: str, after: str, detail: str
) -> None:
    state(project, before)
    project.pytest("--ttnn-perf-update=new")
    state(project, after)

    ran = project.pytest("--ttnn-perf")

    assert failure_of(ran).splitlines()[0] == (
        f"NOT_COMPARABLE: latency 12.50 ms was measured in another configuration: {detail}"
    )
