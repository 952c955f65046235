"""Which format a file has, by its content: names and folders of captures are the user's own."""

from __future__ import annotations

import gzip
import zlib
from enum import Enum
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.cpp_report import is_cpp_report
from pytest_ttnn_perf.capture.device_log import is_device_log
from pytest_ttnn_perf.capture.graph_json import is_graph_json
from pytest_ttnn_perf.capture.ops_csv import is_ops_csv
from pytest_ttnn_perf.capture.report_db import is_report_db
from pytest_ttnn_perf.capture.run_record import is_run_record
from pytest_ttnn_perf.capture.tt_smi import is_tt_smi
from pytest_ttnn_perf.capture.ttlang import is_ttlang_log
from pytest_ttnn_perf.capture.ttlang_perf_json import is_perf_summary_json
from pytest_ttnn_perf.capture.ttlang_sim import is_sim_stats, is_sim_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Enough to know every format by; logs may begin with other output.
_HEAD: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"


class ArtifactKind(Enum):
    """The formats that are read, each in the words of a message."""

    RUN_RECORD = "a run record"
    OPS_CSV = "an ops_perf_results CSV"
    CPP_REPORT = "a cpp_device_perf_report CSV"
    DEVICE_LOG = "a profile_log_device CSV"
    REPORT_DB = "a report database"
    GRAPH_JSON = "a graph capture"
    PERF_SUMMARY_JSON = "a perf summary"
    SIM_TRACE = "a simulator trace"
    SIM_STATS = "simulator statistics"
    TT_SMI = "a tt-smi snapshot"
    TTLANG_LOG = "a tt-lang log"


#: In this order: a log may quote any of the others, so that it comes last.
_TESTS: Final[tuple[tuple[ArtifactKind, Callable[[str], bool]], ...]] = (
    (ArtifactKind.OPS_CSV, is_ops_csv),
    (ArtifactKind.CPP_REPORT, is_cpp_report),
    (ArtifactKind.DEVICE_LOG, is_device_log),
    (ArtifactKind.SIM_TRACE, is_sim_trace),
    (ArtifactKind.PERF_SUMMARY_JSON, is_perf_summary_json),
    (ArtifactKind.TT_SMI, is_tt_smi),
    (ArtifactKind.GRAPH_JSON, is_graph_json),
    (ArtifactKind.RUN_RECORD, is_run_record),
    (ArtifactKind.SIM_STATS, is_sim_stats),
    (ArtifactKind.TTLANG_LOG, is_ttlang_log),
)


def kind_of(file: Path) -> ArtifactKind:
    """Return the format of a file.

    Raises:
        InputError: it cannot be read, is empty, or has none of the formats.
    """
    head = _head(file)
    if not head:
        raise InputError(file, "expected a capture or a run record, found an empty file")
    if is_report_db(head):
        return ArtifactKind.REPORT_DB
    text = head.decode("utf-8-sig", errors="replace")
    for kind, matches in _TESTS:
        if matches(text):
            return kind
    known = ", ".join(kind.value for kind in ArtifactKind)
    raise InputError(file, f"its content is none that is known: {known}")


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
            if not head.startswith(_GZIP):
                return head
            stream.seek(0)
            with gzip.GzipFile(fileobj=stream) as unpacked:
                return unpacked.read(_HEAD)
    except IsADirectoryError as cause:
        raise InputError(file, "expected a file, found a folder") from cause
    except (OSError, EOFError, zlib.error, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or str(cause)
        raise InputError(file, f"cannot read: {reason}") from cause
