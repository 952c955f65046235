"""What a file holds, whatever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf.capture.cpp_report import read_cpp_report
from pytest_ttnn_perf.capture.detect import ArtifactKind, kind_of
from pytest_ttnn_perf.capture.ops_csv import read_ops_csv
from pytest_ttnn_perf.capture.ops_window import window
from pytest_ttnn_perf.report.ops import ops_listing
from pytest_ttnn_perf.workflow.listings import show_run

if TYPE_CHECKING:
    from pathlib import Path

_TABLES = {ArtifactKind.OPS_CSV: read_ops_csv, ArtifactKind.CPP_REPORT: read_cpp_report}


def show_file(file: Path, *, start: str | None, end: str | None, shape: str) -> str:
    """Show a run record, or the op table of a capture, within a window if one is named.

    Raises:
        InputError: the file is neither, or is damaged.
        UsageError: a window was named that the file does not have.
    """
    kind = kind_of(file)
    if kind in _TABLES:
        table = _TABLES[kind](file)
        if start or end:
            table = window(table, start, end)
        return ops_listing(table, name=file.name).text(shape)
    if kind is not ArtifactKind.RUN_RECORD:
        raise InputError(file, f"expected a run record or an op table, found {kind.value}")
    if start or end:
        message = "--start and --end select ops of a capture; a run record has none"
        raise UsageError(message)
    return show_run(file, shape=shape)
