"""The op table of a capture, whichever format holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.cpp_report import read_cpp_report
from pytest_ttnn_perf.capture.detect import ArtifactKind, kind_of
from pytest_ttnn_perf.capture.ops_csv import read_ops_csv
from pytest_ttnn_perf.capture.ops_window import window

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.ops import OpTable

#: The formats that hold one, and who reads them.
OP_TABLES: Final = {
    ArtifactKind.OPS_CSV: read_ops_csv,
    ArtifactKind.CPP_REPORT: read_cpp_report,
}


def op_table_of(file: Path, *, start: str | None = None, end: str | None = None) -> OpTable:
    """Return the op table that a capture holds, or its window between two signposts.

    Raises:
        InputError: it holds none, or is damaged.
        UsageError: it does not have the window.
    """
    kind = kind_of(file)
    if kind not in OP_TABLES:
        raise InputError(file, f"expected a capture with an op table, found {kind.value}")
    table = OP_TABLES[kind](file)
    return window(table, start, end) if start or end else table
