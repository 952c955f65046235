"""What a recorded artifact tells, whichever format it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.detect import ArtifactKind, kind_of
from pytest_ttnn_perf.capture.device_log import read_device_log
from pytest_ttnn_perf.capture.graph_json import read_graph_json
from pytest_ttnn_perf.capture.report_db import read_report_db
from pytest_ttnn_perf.capture.tt_smi import read_tt_smi
from pytest_ttnn_perf.capture.ttlang import read_ttlang_log
from pytest_ttnn_perf.capture.ttlang_perf_json import read_perf_summary_json
from pytest_ttnn_perf.capture.ttlang_sim import read_sim_stats, read_sim_trace
from pytest_ttnn_perf.model.artifact import Artifact
from pytest_ttnn_perf.workflow.board_facts import board_facts, board_of
from pytest_ttnn_perf.workflow.device_metrics import device_metrics, gated_ops
from pytest_ttnn_perf.workflow.kernel_metrics import kernel_metrics, summary_metrics
from pytest_ttnn_perf.workflow.log_metrics import log_metrics
from pytest_ttnn_perf.workflow.memory_metrics import graph_metrics, report_metrics
from pytest_ttnn_perf.workflow.op_tables import op_table_of
from pytest_ttnn_perf.workflow.sim_metrics import sim_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def read_artifact(file: Path) -> Artifact:
    """Return what an artifact tells.

    Raises:
        InputError: the file is of no known format, tells nothing of a test, or is damaged.
    """
    kind = kind_of(file)
    if kind not in ARTIFACTS:
        raise InputError(file, f"expected an artifact of a test, found {kind.value}")
    return ARTIFACTS[kind](file)


def _op_table(file: Path) -> Artifact:
    table = op_table_of(file)
    complete = not table.unread and all(trace.complete for trace in table.traces)
    return Artifact(
        tuple(device_metrics(table, file=file.name)),
        ops=gated_ops(table) if complete else None,
        arch=table.arch,
        devices=len(table.devices) or None,
        table=table,
    )


def _device_log(file: Path) -> Artifact:
    log = read_device_log(file)
    devices = len({program.device for program in log.programs}) or None
    return Artifact(tuple(log_metrics(log, file=file.name)), arch=log.arch, devices=devices)


def _summary(file: Path) -> Artifact:
    summary = read_perf_summary_json(file)
    return Artifact(tuple(summary_metrics(summary, file=file.name)), arch=summary.arch)


def _ttlang(file: Path) -> Artifact:
    log = read_ttlang_log(file)
    return Artifact(tuple(kernel_metrics(log, file=file.name)), kernels=log)


def _report(file: Path) -> Artifact:
    report = read_report_db(file)
    return Artifact(tuple(report_metrics(report)), report=report)


def _boards(file: Path) -> Artifact:
    snapshot = read_tt_smi(file)
    return Artifact(board=board_of(snapshot), environment=board_facts(snapshot))


#: The formats that tell something of a test, and how.
ARTIFACTS: Final[Mapping[ArtifactKind, Callable[[Path], Artifact]]] = {
    ArtifactKind.OPS_CSV: _op_table,
    ArtifactKind.CPP_REPORT: _op_table,
    ArtifactKind.DEVICE_LOG: _device_log,
    ArtifactKind.REPORT_DB: _report,
    ArtifactKind.GRAPH_JSON: lambda file: Artifact(tuple(graph_metrics(read_graph_json(file)))),
    ArtifactKind.PERF_SUMMARY_JSON: _summary,
    ArtifactKind.TTLANG_LOG: _ttlang,
    ArtifactKind.SIM_TRACE: lambda file: Artifact(tuple(sim_metrics(read_sim_trace(file)))),
    ArtifactKind.SIM_STATS: lambda file: Artifact(tuple(sim_metrics(read_sim_stats(file)))),
    ArtifactKind.TT_SMI: _boards,
}
