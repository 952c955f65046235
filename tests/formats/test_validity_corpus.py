"""Real captures are valid, but for two that lost data; what would make them invalid is seen."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.ops.regions import most_common_duration, why_invalid
from pytest_ttnn_perf.analysis.readers.detect import op_table_of
from tests.analysis.rules.captures import TABLES
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BROKEN = {"qwen27_incumbent_full_attention.csv", "qwen_27b_linear_incomplete_replays.csv"}
KERNEL = "DEVICE KERNEL DURATION [ns]"


@pytest.mark.parametrize("name", TABLES)
def test_every_real_capture(name: str) -> None:
    table = op_table_of(corpus(f"ops_perf/{name}"))
    flaw = why_invalid(table, name)
    lost = f"{name}: the replays of trace 0 on device 3 ran different ops"
    assert flaw == (lost if name in BROKEN else None)
    alike = most_common_duration(table)
    assert alike is None or alike.share < 0.15


def altered(tmp_path: Path, alter: Callable[[dict[str, str]], dict[str, str]]) -> str | None:
    """Return why a real capture is invalid once its rows are altered."""
    with corpus("ops_perf/llama_8b_final_decode.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    file = tmp_path / "ops.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(map(alter, rows))
    return why_invalid(op_table_of(file), "ops.csv")


def test_a_report_of_kernel_durations_alone_is_valid(tmp_path: Path) -> None:
    """As tt-metal's device performance tests make them."""

    def only_kernel(row: dict[str, str]) -> dict[str, str]:
        return {
            name: "" if name.startswith(("DEVICE F", "DEVICE B", "DEVICE N", "DEVICE T")) else cell
            for name, cell in row.items()
        }

    assert altered(tmp_path, only_kernel) is None
