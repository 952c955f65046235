"""The device profiler of builds with Tracy: buffers that fill up, data in memory, and files."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import _machine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._programs import Run
    from .device import MeshDevice

#: What stands for "no trace".
INVALID = 1 << 63
_DEFAULT_PROGRAMS = 1000
_FW_NS = 700
_CORES = 64
_COLUMNS = (
    "GLOBAL CALL COUNT", "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID", "DEVICE ID",
    "DEVICE ARCH", "OP NAME", "CORE COUNT", "AVAILABLE WORKER CORE COUNT",
    "DEVICE FW DURATION [ns]", "DEVICE FW START CYCLE", "DEVICE FW END CYCLE",
    "DEVICE KERNEL DURATION [ns]", "DEVICE KERNEL START CYCLE", "DEVICE KERNEL END CYCLE",
    "OP TO OP LATENCY [ns]", "OP TO OP LATENCY BR/NRISC START [ns]",
)  # fmt: skip
_FULL = (
    "Profiler DRAM buffers were full, markers were dropped! device {}, worker core 1, 1, Risc "
    "BRISC,  bufferEndIndex = 12000. Please either decrease the number of ops being profiled or "
    "run read device profiler more often"
)


@dataclass(frozen=True, slots=True)
class ProgramExecutionUID:
    runtime_id: int
    trace_id: int
    trace_id_counter: int


@dataclass(frozen=True, slots=True)
class ProgramSingleAnalysisResult:
    duration: int
    start_timestamp: int
    end_timestamp: int


@dataclass(frozen=True, slots=True)
class ProgramAnalysisData:
    program_execution_uid: ProgramExecutionUID
    program_analyses_results: dict[str, ProgramSingleAnalysisResult]
    core_count: int
    num_available_cores: int


PerfData = dict[int, list[ProgramAnalysisData]]


_buffers: dict[int, list[Run]] = {}
_read: list[Run] = []
_latest: PerfData = {}


def keep(run: Run) -> None:
    """Let the device write markers, if it profiles."""
    context = _machine.existing()
    if context is not None and context.profiled:
        _buffers.setdefault(run.chip, []).append(run)


def read(device: MeshDevice, *, closing: bool = False) -> None:
    """Empty the buffers of a device; what was read is worked up mid-run only if that is on."""
    context = _machine.existing()
    if context is None or not context.profiled:
        return
    for chip in device.chips:
        found = _buffers.pop(chip, [])
        room = context.options.get("TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT", _DEFAULT_PROGRAMS)
        kept = found[: max(0, min(int(room), len(found) - context.script.lost_programs))]
        if len(kept) < len(found):
            _machine.log("warning", "Metal", f"{_FULL.format(chip)} (profiler.cpp:1011)")
        _read.extend(kept)
    if closing or _is_on(context, "TT_METAL_PROFILER_MID_RUN_DUMP"):
        runs = _read.copy()
        _read.clear()
        _work_up(context, device.chips, runs)


def _is_on(context: _machine.Context, name: str) -> bool:
    return context.options.get(name, "").startswith("1")


def _work_up(context: _machine.Context, chips: tuple[int, ...], runs: list[Run]) -> None:
    if not _is_on(context, "TT_METAL_PROFILER_CPP_POST_PROCESS"):
        return
    _latest.update({chip: [] for chip in chips})
    for run in sorted(runs, key=lambda run: (run.runtime_id, run.replay or 0)):
        _latest.setdefault(run.chip, []).append(_analysed(run))
    if runs:
        rows = (_report_row(run, context.script.arch) for run in runs)
        _append("cpp_device_perf_report.csv", ",".join(_COLUMNS) + "\n", rows)


def _analysed(run: Run) -> ProgramAnalysisData:
    kernel = ProgramSingleAnalysisResult(round(run.ns), run.start, run.end)
    firmware = ProgramSingleAnalysisResult(round(run.ns) + _FW_NS, run.start, run.end + _FW_NS)
    no_trace = INVALID if run.trace is None else run.trace
    no_replay = INVALID if run.replay is None else run.replay
    return ProgramAnalysisData(
        ProgramExecutionUID(run.call_count, no_trace, no_replay),
        {"DEVICE KERNEL DURATION [ns]": kernel, "DEVICE FW DURATION [ns]": firmware},
        run.cores,
        _CORES,
    )


def _report_row(run: Run, arch: str) -> str:
    trace = ("" if run.trace is None else run.trace, "" if run.replay is None else run.replay)
    row = (
        run.call_count, *trace, run.chip, arch, run.code, run.cores, _CORES,
        round(run.ns) + _FW_NS, run.start, run.end + _FW_NS, round(run.ns), run.start, run.end,
        round(run.gap_ns), round(run.gap_ns),
    )  # fmt: skip
    return ",".join(map(str, row)) + "\n"


def latest_perf_data() -> PerfData:
    """Return what the last read of each chip gave; nothing where nothing was profiled."""
    return dict(_latest)


def folder() -> Path:
    """Return where the profiler writes."""
    home = Path(os.environ.get("TT_METAL_HOME") or Path.cwd())
    return Path(os.environ.get("TT_METAL_PROFILER_DIR") or home / "generated" / "profiler")


def host_event(kind: str, **known: object) -> None:
    """Tell ``python -m tracy`` what the host did, if it listens."""
    script = _machine.read_script() if os.environ.get("TTNN_OP_PROFILER") == "1" else None
    if script is not None and script.tracy:
        event = {"kind": kind, "at": time.perf_counter_ns(), **known}
        _append("tracy_events.jsonl", "", [json.dumps(event) + "\n"])


def _append(name: str, header: str, rows: Iterable[str]) -> None:
    file = folder() / ".logs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write("" if stream.tell() else header)
        stream.writelines(rows)
