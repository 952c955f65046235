"""What the environment of a worker is given, so that a profiler runs or nothing is in the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.device.preflight import installed
from pytest_ttnn_perf.model.profile import ProfilerKind

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The profiler's own report, in the folder that it is given.
REPORT: Final = ".logs/cpp_device_perf_report.csv"
_FOLDER: Final = "profiler"
_LOGS_PATH: Final = "TT_METAL_LOGS_PATH"
_PROFILER_DIR: Final = "TT_METAL_PROFILER_DIR"
#: How many programs the profiler has room for, by itself and where that was not enough.
_MORE_PROGRAMS: Final = 10_000
#: A device that answers no op for so long hangs; the longest ops take seconds.
_OPERATION_TIMEOUT_S: Final = 300


def worker_variables(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return what every worker is given where there is a ttnn, unless the user has set it.

    Opening a device writes logs: into the worker's ``folder``, not where the user stands.
    """
    if installed().version is None:
        return {}
    given = {
        _LOGS_PATH: str(folder / "logs"),
        "TT_METAL_OPERATION_TIMEOUT_SECONDS": str(_OPERATION_TIMEOUT_S),
    }
    return {name: value for name, value in given.items() if name not in environment}


def profiler_variables(kind: ProfilerKind, folder: Path, *, more_room: bool) -> dict[str, str]:
    """Return what a worker is given whose tests are profiled.

    With ``more_room`` fewer markers are dropped; kernels are compiled anew for it, and the device
    has less memory.
    """
    if kind is ProfilerKind.TTLANG:
        # Not with a profiler folder of its own: tt-lang looks for the traces in the usual one.
        return {
            "TTLANG_PERF_DUMP": "1",
            "TT_METAL_DEVICE_PROFILER": "1",
            "TT_METAL_DEVICE_PROFILER_NOC_EVENTS": "1",
            "TT_METAL_PROFILER_MID_RUN_DUMP": "1",
        }
    if kind is ProfilerKind.TRACY:
        return {}  # its launcher sets them
    variables = {
        "TT_METAL_DEVICE_PROFILER": "1",
        "TT_METAL_PROFILER_MID_RUN_DUMP": "1",
        "TT_METAL_PROFILER_CPP_POST_PROCESS": "1",
        _PROFILER_DIR: str(folder / _FOLDER),
    }
    if more_room:
        variables["TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT"] = str(_MORE_PROGRAMS)
    return variables


def moved(environment: Mapping[str, str], shared: Path, own: Path) -> dict[str, str]:
    """Return what leads into a worker's folder as it is for a process with one of its own in it."""
    given = {name: Path(environment.get(name, "")) for name in (_LOGS_PATH, _PROFILER_DIR)}
    return {
        name: str(own / place.relative_to(shared))
        for name, place in given.items()
        if place.is_relative_to(shared)
    }


def report_in(folder: Path) -> Path:
    """Return where a profiled worker with that folder has its report."""
    return folder / _FOLDER / REPORT
