"""The profiler's ``ops_perf_results*.csv``: every release of it, read into an op table."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.ops_collector import Collector
from pytest_ttnn_perf.capture.ops_columns import is_header, layouts_of
from pytest_ttnn_perf.capture.ops_records import READ_AT_ONCE, Records, header_names, read_header

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.capture.ops_columns import Layout
    from pytest_ttnn_perf.model.ops import OpTable


def is_ops_csv(head: str) -> bool:
    """Return whether a text begins as an ops CSV does: by its first line."""
    first_line = head.partition("\n")[0]
    return is_header(header_names(first_line.encode("utf-8", "replace")))


def read_ops_csv(file: Path) -> OpTable:
    """Read a capture.

    Where the profiler has a column for the time of an op but never filled it, as for Quasar, the
    next best one is taken; the table's ``kernel_time`` names it.

    Raises:
        InputError: with file and line; also for a file that is cut, or has no row at all.
    """
    try:
        with file.open("rb", buffering=READ_AT_ONCE) as stream:
            layouts = layouts_of(file, read_header(file, stream))
            first = _read(file, stream, layouts[0])
        if first.devices:
            return first
        others = (_read_again(file, layout) for layout in layouts[1:])
        return next((table for table in others if table.devices), first)
    except IsADirectoryError as cause:
        raise InputError(file, "expected a file, found a folder") from cause
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause


def _read_again(file: Path, layout: Layout) -> OpTable:
    with file.open("rb", buffering=READ_AT_ONCE) as stream:
        read_header(file, stream)
        return _read(file, stream, layout)


def _read(file: Path, stream: BinaryIO, layout: Layout) -> OpTable:
    records = Records(file, stream, layout)
    collector = Collector(file, layout)
    last_line = 1
    for rows, lines in records.batches():
        collector.add(rows, lines)
        last_line = lines[-1]
    if not collector.rows:
        raise InputError(file, "no rows below the header: nothing was captured")
    if records.last_cell_may_be_cut and layout.last_is_used:
        problem = "the last line has no line end, so its last value may be cut off"
        raise InputError(file, problem, line=last_line)
    return collector.table()
