"""What a file holds, whatever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf.capture.detect import ArtifactKind, kind_of
from pytest_ttnn_perf.capture.device_log import read_device_log
from pytest_ttnn_perf.capture.graph_json import read_graph_json
from pytest_ttnn_perf.capture.report_db import read_report_db
from pytest_ttnn_perf.capture.tt_smi import read_tt_smi
from pytest_ttnn_perf.capture.ttlang import read_ttlang_log
from pytest_ttnn_perf.capture.ttlang_perf_json import read_perf_summary_json
from pytest_ttnn_perf.capture.ttlang_sim import read_sim_stats, read_sim_trace
from pytest_ttnn_perf.report.ops import ops_listing
from pytest_ttnn_perf.report.records import record_listing
from pytest_ttnn_perf.workflow.listings import show_run
from pytest_ttnn_perf.workflow.op_tables import OP_TABLES, op_table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_RECORDS: Final[Mapping[ArtifactKind, Callable[[Path], object]]] = {
    ArtifactKind.DEVICE_LOG: read_device_log,
    ArtifactKind.REPORT_DB: read_report_db,
    ArtifactKind.GRAPH_JSON: read_graph_json,
    ArtifactKind.PERF_SUMMARY_JSON: read_perf_summary_json,
    ArtifactKind.SIM_TRACE: read_sim_trace,
    ArtifactKind.SIM_STATS: read_sim_stats,
    ArtifactKind.TT_SMI: read_tt_smi,
    ArtifactKind.TTLANG_LOG: read_ttlang_log,
}


def show_file(file: Path, *, start: str | None, end: str | None, shape: str) -> str:
    """Show what a file holds; of an op table, the window between two signposts if they are named.

    Raises:
        InputError: the file is of no known format, or is damaged.
        UsageError: a window was named that the file does not have.
    """
    kind = presumed_kind_of(file)
    if kind in OP_TABLES:
        table = op_table_of(file, start=start, end=end)
        return ops_listing(table, name=file.name).text(shape)
    if start or end:
        message = f"--start and --end select ops of an op table; {file.name} is {kind.value}"
        raise UsageError(message)
    if kind is ArtifactKind.RUN_RECORD:
        return show_run(file, shape=shape)
    return record_listing(_RECORDS[kind](file), name=file.name, kind=kind.value).text(shape)


def presumed_kind_of(file: Path) -> ArtifactKind:
    """Return the format of a file; what only calls itself JSON is told what a record should be."""
    try:
        return kind_of(file)
    except InputError:
        if file.suffix in {".json", ".jsonl"}:
            return ArtifactKind.RUN_RECORD
        raise
