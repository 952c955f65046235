"""A stand-in for TTNN that plays a scripted device; for child processes of tests only."""

# ruff: noqa: F401, F403, ARG001 (the names and arguments are TTNN's)

from __future__ import annotations

import enum
import json
import os
from types import SimpleNamespace

from . import _machine, _profiler, _programs, cluster, device, graph
from ._profiler import latest_perf_data as get_latest_programs_perf_data
from ._tensors import *
from ._tensors import DataType, Layout
from .device import *
from .device import MeshDevice
from .distributed.distributed import *
from .types import *

_machine.answer_questions()
Device = MeshDevice
bfloat16, bfloat8_b, bfloat4_b, float32 = (
    DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B, DataType.FLOAT32,
)  # fmt: skip
TILE_LAYOUT, ROW_MAJOR_LAYOUT = Layout.TILE, Layout.ROW_MAJOR

CONFIG = SimpleNamespace(
    enable_fast_runtime_mode=True,
    enable_logging=False,
    enable_graph_report=False,
    enable_comparison_mode=False,
    root_report_path="generated/ttnn/reports",
    report_name=None,
)
vars(CONFIG).update(json.loads(os.environ.get("TTNN_CONFIG_OVERRIDES") or "{}"))
_machine.write(2, f"DEBUG    | ttnn:<module>:45 - Initial ttnn.CONFIG: {CONFIG}\n")


def begin_trace_capture(mesh_device: MeshDevice, *, cq_id: int | None = None) -> int:
    return _programs.begin_trace(mesh_device)


def end_trace_capture(mesh_device: MeshDevice, trace_id: int, *, cq_id: int | None = None) -> None:
    _programs.end_trace(mesh_device, trace_id)


def execute_trace(
    mesh_device: MeshDevice,
    trace_id: int,
    *,
    cq_id: int | None = None,
    blocking: bool = True,
) -> None:
    _programs.replay(mesh_device, trace_id)
    if blocking:
        _programs.wait(mesh_device)


def release_trace(mesh_device: MeshDevice, trace_id: int) -> None:
    del mesh_device.traces[trace_id]


def tracy_message(source: str, color: int = 0xF0F8FF) -> None:
    """Leave a message in the capture; signposts are such messages."""
    if "TT_SIGNPOST: " in source:
        name = source.strip("`").removeprefix("TT_SIGNPOST: ").partition("\n")[0]
        _profiler.host_event("signpost", name=name)
