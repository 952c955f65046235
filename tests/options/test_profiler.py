"""``--ttnn-perf-profiler`` and ``profiler``: where device times come from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of, write_latency
from tests.device.script import FAKE

if TYPE_CHECKING:
    from tests.harness.project import Project

IGNORE = ("--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0")


@pytest.mark.parametrize(
    ("value", "variables", "message"),
    [
        (
            "off",
            {"TT_METAL_DEVICE_PROFILER": "0"},
            "TT_METAL_DEVICE_PROFILER=0 instruments the kernels, and a ttnn without "
            "Tracy refuses every device call, even if 0: unset TT_METAL_DEVICE_PROFILER",
        ),
        (
            "auto",
            {"TTNN_OP_PROFILER": "1", "TT_METAL_SLOW_DISPATCH_MODE": "1"},
            "TTNN_OP_PROFILER=1 records every operation: unset TTNN_OP_PROFILER; "
            "TT_METAL_SLOW_DISPATCH_MODE=1 sends every program by itself, even if 0: unset "
            "TT_METAL_SLOW_DISPATCH_MODE",
        ),
    ],
    ids=["off", "auto"],
)
def test_variables_in_the_way_are_refused_where_there_is_a_ttnn(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    variables: dict[str, str],
    message: str,
) -> None:
    write_latency(project, 12.5)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    arguments = (*IGNORE, f"--ttnn-perf-profiler={value}")

    assert counts_of(project.pytest(*arguments)) == "1 passed"

    before = project.files()
    monkeypatch.syspath_prepend(FAKE)
    assert sorted(refusal_of(project.pytest(*arguments)).split("; ")) == sorted(message.split("; "))
    assert project.files() == before
    assert "ttnn" not in sys.modules
