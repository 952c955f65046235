"""Which instruments a process measures with, by its role and its assignment."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_ttnn_perf.device.errors import cause_of
from pytest_ttnn_perf.model.profile import PassChoice, ProfilerKind
from pytest_ttnn_perf.workflow.instruments import Instruments, Replaying

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ttnn_perf.model.assignment import Assignment
    from pytest_ttnn_perf.model.settings import Settings


def error_text(kind: str, text: str) -> str:
    """Return an error in one line; of one of tt-metal's, the cause without the backtrace."""
    lines = cause_of(text).strip().splitlines()
    return f"{kind}: {lines[0]}" if lines else kind


def equipment(
    settings: Settings,
    profiler: ProfilerKind,
    assignment: Assignment | None = None,
    *,
    own: Path | None = None,
    opened: Callable[[], None] | None = None,
) -> Instruments:
    """Return the instruments of a process.

    ``profiler`` is what this process has been given variables for; ``own`` is its folder if it
    shares that of the assignment with others; ``opened`` is called before tests open a device.
    """
    if settings.replay is not None:
        return Replaying(settings.replay)
    if not _has_ttnn():
        return Instruments()
    return _beside_devices(settings, profiler, assignment, own, opened)


def _has_ttnn() -> bool:
    try:
        return find_spec("ttnn") is not None
    except ValueError:  # something that is no package stands in for it, such as a simulator
        return False


def _beside_devices(
    settings: Settings,
    profiler: ProfilerKind,
    assignment: Assignment | None,
    own: Path | None,
    opened: Callable[[], None] | None,
) -> Instruments:
    from pytest_ttnn_perf.device.machine import kernels_cached
    from pytest_ttnn_perf.device.opened import OpenDevices
    from pytest_ttnn_perf.device.variables import report_in
    from pytest_ttnn_perf.workflow.device_instruments import BesideDevices
    from pytest_ttnn_perf.workflow.profiling_instruments import Printing, Profiling, Signposting

    reports = settings.artifacts / "reports"
    drafts = own or (assignment.folder if assignment else None)
    devices = OpenDevices(on_open=opened)
    devices.observe()
    if profiler is ProfilerKind.DEVICE and assignment is not None:
        only = settings.passes is PassChoice.DEVICE  # nobody else captures a graph then
        return Profiling(
            devices,
            reports=reports if only else None,
            drafts=drafts,
            report=report_in(own or assignment.folder),
            log=assignment.folder / "worker.log",
        )
    if profiler is ProfilerKind.TTLANG:
        return Printing(devices)
    if profiler is ProfilerKind.TRACY:
        return Signposting(devices)
    return BesideDevices(
        devices,
        reports=reports,
        drafts=drafts,
        realtime=profiler is ProfilerKind.REALTIME,
        required=settings.profiler is ProfilerKind.REALTIME,
        kernels_cached=kernels_cached(os.environ),
    )
