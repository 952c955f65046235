"""A user's test that breaks rules of the checklist, on any machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

#: What the test is found to do wrong: it fails for the first, and is warned of the second.
ERROR = (
    "TTP701 batch-not-divisible (error): a batch of 6 among 4 devices leaves 2 over (limit: 0 "
    "samples)"
)
WARNING = (
    "TTP902 pcc-not-checked (warning): the test measures its model without checking the output"
)

_SOURCE = """
    import pytest

    @pytest.mark.ttnn_perf({marker})
    def test_model(ttnn_perf):
        ttnn_perf.record("latency", 12.5, unit="ms")
        ttnn_perf.facts(data_parallel=4, batch=6)
"""


def write_model(project: Project, marker: str = "") -> None:
    """Write the test, with what its marker says."""
    project.write(test_model=_SOURCE.replace("{marker}", marker))


def checklist_of(ran: Ran) -> list[str]:
    """Return what the summary says of the checklist."""
    lines = ran.text.splitlines()
    if "optimization checklist" not in lines:
        return []
    rest = lines[lines.index("optimization checklist") + 1 :]
    return rest[: rest.index("")]
