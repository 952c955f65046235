"""A sweep as a terminal of 80 columns shows it: the best point, and what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.golden.test_widths import fits
from tests.harness.golden import assert_golden
from tests.harness.terminal import Terminal

if TYPE_CHECKING:
    from tests.harness.project import Project

#: A call takes some time to launch, and to fill the cores; bfp8 halves the time and memory of a
#: sample.
MODEL = """
    import os

    import pytest

    FULL = int(os.environ.get("FULL", 128))

    @pytest.mark.ttnn_perf(
        sweep={"batch": [1, 4, 8, 16, 32, 64], "weights": ["bf16", "bfp8"]},
        require={"pcc": 0.99},
    )
    def test_model(ttnn_perf, batch, weights):
        size = 2 if weights == "bf16" else 1
        if batch * size >= FULL:
            raise RuntimeError(
                "TT_FATAL @ bank_manager.cpp:462: false\\ninfo:\\nOut of Memory: Not enough space "
                f"to allocate {batch * size} B DRAM buffer across 12 banks\\nbacktrace:\\n --- x"
            )
        time = 0.1 + max(0.3, 0.025 * size * batch)
        ttnn_perf.record("wall_time", [time, time * 1.002, time * 0.998], unit="ms")
        ttnn_perf.record("dram_bytes", batch * size * 4096, unit="B")
        ttnn_perf.check_accuracy(pcc=0.99951 if weights == "bf16" else 0.99934)
"""


@pytest.fixture
def recorded(project: Project) -> Project:
    project.write(test_model=MODEL)
    assert project.pytest("--ttnn-perf-update=new").code == 0
    return project


@pytest.mark.parametrize(("full", "begin"), [("128", "ttnn-perf"), ("64", "FAILURES")])
def test_run(recorded: Project, monkeypatch: pytest.MonkeyPatch, full: str, begin: str) -> None:
    """With less memory, a point does not fit any more."""
    monkeypatch.setenv("FULL", full)
    terminal = Terminal(recorded, monkeypatch, width=80)
    text = terminal.pytest("--ttnn-perf", "--ttnn-perf-checklist=off")
    golden = "run_80" if full == "128" else "no_room_80"
    assert_golden(f"sweep/{golden}", text[text.index(f"=== {begin}") :])
    fits(text[text.index("=== ttnn-perf") :], 80)
