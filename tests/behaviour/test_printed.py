"""What tt-lang prints while a test runs is taken by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analysis.readers.ttlang_text import PERF_SUMMARY, PROGRAM
from tests.behaviour.model import MODEL, record_of

if TYPE_CHECKING:
    from tests.harness.project import Project

SUMMARY = PERF_SUMMARY.partition(PROGRAM)[0].replace("programs: 2", "programs: 1") + PROGRAM
#: 1,500,000 cycles at 1350 MHz, and what the text says of transfers and barriers.
EXPECTED = {
    "kernel_time": [1_500_000 * 1000 / 1350],
    "kernel_dram_read_bytes": [96 * 1024],
    "kernel_dram_write_bytes": [1.5 * 1024 * 1024],
    "kernel_dram_transfers": [48 + 768],
    "kernel_cores": [6],
    "kernel_barriers": [6],
    "kernel_bandwidth": [1.1],
}
PRINTING = """
    from pathlib import Path

    def test_model(ttnn_perf):
        ttnn_perf.measure(lambda: None)
        print(Path(__file__).with_name("printed.txt").read_text())
"""


@pytest.fixture
def printing(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TTLANG_PERF_DUMP", "1")
    project.write(test_model=PRINTING)
    (project.path / "printed.txt").write_text(f"of the model\n{SUMMARY}\n")
    return project


@pytest.mark.parametrize("capture", ["fd", "sys"])
def test_a_perf_summary_on_stdout_is_gated(printing: Project, capture: str) -> None:
    ran = printing.pytest("--ttnn-perf", "-v", f"--capture={capture}", "--ttnn-perf-missing=warn")

    metrics = record_of(printing)["tests"][MODEL]["metrics"]
    measured = {name: metrics[name]["samples"] for name in metrics if name.startswith("kernel_")}
    assert measured == EXPECTED
    assert f"NO_BASELINE {MODEL}: kernel_time" in ran.text


def test_a_summary_that_is_cut_is_no_data(printing: Project) -> None:
    (printing.path / "printed.txt").write_text(SUMMARY[: len(SUMMARY) // 2])

    ran = printing.pytest("--ttnn-perf")

    assert ran.code == 1
    assert "NO_DATA: kernel_time has no samples: stdout: a PERF SUMMARY is cut" in ran.text
