"""Detect the format of a file; read run records and op tables."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import region_named, region_table, window
from pytest_ttnn_perf.analysis.readers.benchmark_json import is_benchmark_json, read_comparable_run
from pytest_ttnn_perf.analysis.readers.device_csv import RegionChoice
from pytest_ttnn_perf.analysis.readers.graph import is_graph_json
from pytest_ttnn_perf.analysis.readers.ops_csv import (
    is_cpp_report,
    is_ops_csv,
    read_cpp_report,
    read_ops_csv,
)
from pytest_ttnn_perf.analysis.readers.report_db import is_report_db, read_report_db
from pytest_ttnn_perf.analysis.readers.tt_smi import is_tt_smi
from pytest_ttnn_perf.analysis.readers.ttlang import (
    NO_CHIP,
    Problem,
    ProblemKind,
    TtlangLog,
    is_perf_summary_json,
    is_ttlang_log,
    read_perf_summary_json,
    read_ttlang_log,
)
from pytest_ttnn_perf.analysis.readers.ttlang_sim import is_sim_trace, read_sim_trace
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import loads, parse_json, read_text, reading, unpacked
from pytest_ttnn_perf.core.observation import decode_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.ops import OpTable


#: How the first line of a journal ends.
JOURNAL_MARK: Final = '"journal": true}'


def read_run(file: Path, hardware: Hardware | None = None) -> Run:
    """Read a run record, or the results of a benchmark as one.

    ``hardware`` is that of results that name no board; a record says its own.

    A journal has one line for the run and one per test; its last line may be cut off, which says
    that the run was killed while writing it, and costs that test only.
    """
    text = read_text(file)
    if _is_journal(text):
        return _read_journal(file, text)
    if is_benchmark_json(text[:_HEAD]):
        return read_comparable_run(file, hardware)
    if hardware is not None:
        raise InputError(file, "it says on which board it was measured: leave out --hardware")
    _refuse_graph(file, text[:_HEAD])
    if not text.lstrip().startswith("{"):
        kind = next((kind for kind, matches in _TESTS if matches(text[:_HEAD])), None)
        if kind is not None:
            found = f"found {kind.value}: ttnn-perf show {shlex.quote(str(file))}"
            raise InputError(file, f"expected a run record, {found}")
    return parse_json(text, decode_run, file=file)


def is_run_record(head: str) -> bool:
    return _is_journal(head) or (head.lstrip().startswith("{") and '"format"' in head)


def _is_journal(text: str) -> bool:
    heading = text.partition("\n")[0]
    return heading.startswith("{") and heading.endswith(JOURNAL_MARK)


def _read_journal(file: Path, text: str) -> Run:
    heading, *lines = text.splitlines()
    tests: dict[str, object] = {}
    for number, line in enumerate(lines, start=2):
        entry = _object(line)
        if entry is None and number <= len(lines):
            raise InputError(file, "expected one test of the run's journal", line=number)
        tests.update(entry or {})
    try:
        return replace(decode_run({**(_object(heading) or {}), "tests": tests}), complete=False)
    except DecodeError as cause:
        raise InputError(file, str(cause)) from cause


def _object(line: str) -> dict[str, object] | None:
    try:
        entry = loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


#: Enough to know every format by; logs may begin with other output.
_HEAD: Final = 1 << 18


class ArtifactKind(Enum):
    """The formats that are read, each in the words of a message."""

    RUN_RECORD = "a run record"
    OPS_CSV = "an ops_perf_results CSV"
    CPP_REPORT = "a cpp_device_perf_report CSV"
    REPORT_DB = "a report database"
    PERF_SUMMARY_JSON = "a perf summary"
    SIM_TRACE = "a simulator trace"
    BENCHMARK_JSON = "a benchmark result"
    TT_SMI = "a tt-smi snapshot"
    TTLANG_LOG = "a tt-lang log"


#: In this order: a log may quote any of the others, so that it comes last.
_TESTS: Final[tuple[tuple[ArtifactKind, Callable[[str], bool]], ...]] = (
    (ArtifactKind.OPS_CSV, is_ops_csv),
    (ArtifactKind.CPP_REPORT, is_cpp_report),
    (ArtifactKind.SIM_TRACE, is_sim_trace),
    (ArtifactKind.PERF_SUMMARY_JSON, is_perf_summary_json),
    # Has the device's name where a snapshot has all of it.
    (ArtifactKind.BENCHMARK_JSON, is_benchmark_json),
    (ArtifactKind.TT_SMI, is_tt_smi),
    (ArtifactKind.RUN_RECORD, is_run_record),
    (ArtifactKind.TTLANG_LOG, is_ttlang_log),
)


def kind_of(file: Path) -> ArtifactKind:
    head = head_of(file)
    if not head:
        raise InputError(file, "expected a capture or a run record, found an empty file")
    if is_report_db(head):
        return ArtifactKind.REPORT_DB
    text = head.decode("utf-8-sig", errors="replace")
    _refuse_graph(file, text)
    for kind, matches in _TESTS:
        if matches(text):
            return kind
    if text.startswith("ARCH: "):
        problem = "a profile_log_device CSV is not read: give the ops_perf_results CSV of that run"
        raise InputError(file, problem)
    known = ", ".join(kind.value for kind in ArtifactKind)
    raise InputError(file, f"its format is not known; known formats: {known}")


def _refuse_graph(file: Path, head: str) -> None:
    if is_graph_json(head):
        remedy = f"make its report database: python -m ttnn.graph_report {shlex.quote(str(file))}"
        raise InputError(file, f"a graph capture is not read itself; {remedy} FOLDER")


def head_of(file: Path) -> bytes:
    """Return the beginning of a file, unpacked, to detect its format."""
    with reading(file), unpacked(file) as stream:
        return stream.read(_HEAD)


#: The formats that hold one, and who reads them.
OP_TABLES: Final = {
    ArtifactKind.OPS_CSV: read_ops_csv,
    ArtifactKind.CPP_REPORT: read_cpp_report,
}


def op_table_of(
    file: Path, *, start: str | None = None, end: str | None = None, region: str | None = None
) -> OpTable:
    kind = kind_of(file)
    if kind not in OP_TABLES:
        raise InputError(file, f"expected a capture with an op table, found {kind.value}")
    return part_of(OP_TABLES[kind](file), RegionChoice(region, start, end), file=file.name)


def part_of(table: OpTable, choice: RegionChoice, *, file: str) -> OpTable:
    if choice.start or choice.end:
        table = window(table, choice.start, choice.end)
    if choice.region is None:
        return table
    return region_table(table, region_named(table, choice.region, file))


def kernels_in(file: Path) -> TtlangLog:
    """Read what tt-lang printed or counted, in any of its formats."""
    head = head_of(file).decode("utf-8-sig", errors="replace")
    if is_sim_trace(head):
        return TtlangLog(sim=read_sim_trace(file))
    if is_perf_summary_json(head):
        summary = read_perf_summary_json(file)
        doubt = () if summary.arch else (Problem(1, ProblemKind.UNKNOWN_CHIP, NO_CHIP),)
        return TtlangLog(perf_summaries=(summary,), problems=doubt)
    return read_ttlang_log(file)


#: What ttnn calls the database in the folder of a report.
DATABASE: Final = "db.sqlite"


def report_of(file: Path) -> Report:
    """Read a report database; a folder stands for the one in it."""
    if (file / DATABASE).is_file():
        file = file / DATABASE
    return read_report_db(file)
