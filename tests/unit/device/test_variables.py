"""What a worker's environment is given: for every profiler, and never against the user's word."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ttnn_perf.device.environment import (
    REPORT,
    profiler_variables,
    report_in,
    worker_variables,
)
from pytest_ttnn_perf.records.settings import ProfilerKind

FOLDER = Path("/runs/1-device")
DEVICE = {
    "TT_METAL_DEVICE_PROFILER": "1",
    "TT_METAL_PROFILER_MID_RUN_DUMP": "1",
    "TT_METAL_PROFILER_CPP_POST_PROCESS": "1",
    "TT_METAL_PROFILER_DIR": "/runs/1-device/profiler",
}
TTLANG = {
    "TTLANG_PERF_DUMP": "1",
    "TT_METAL_DEVICE_PROFILER": "1",
    "TT_METAL_DEVICE_PROFILER_NOC_EVENTS": "1",
    "TT_METAL_PROFILER_MID_RUN_DUMP": "1",
}
GIVEN = {
    "TT_METAL_LOGS_PATH": "/runs/1-device/logs",
    "TT_METAL_OPERATION_TIMEOUT_SECONDS": "300",
}


def test_every_worker_logs_into_its_own_folder_and_does_not_hang_for_ever() -> None:
    assert worker_variables({"PATH": "/bin"}, FOLDER) == GIVEN


@pytest.mark.parametrize("value", ["", "0", "/elsewhere"])
@pytest.mark.parametrize("name", GIVEN)
def test_what_the_user_has_set_stays(name: str, value: str) -> None:
    others = {other: given for other, given in GIVEN.items() if other != name}
    assert worker_variables({name: value}, FOLDER) == others


@pytest.mark.parametrize(
    ("kind", "usual", "with_more_room"),
    [
        (
            ProfilerKind.DEVICE,
            DEVICE,
            {**DEVICE, "TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT": "10000"},
        ),
        (ProfilerKind.TTLANG, TTLANG, TTLANG),
        (ProfilerKind.TRACY, {}, {}),
    ],
    ids=["device", "ttlang", "tracy"],
)
def test_a_profiler_has_its_variables(
    kind: ProfilerKind, usual: dict[str, str], with_more_room: dict[str, str]
) -> None:
    assert profiler_variables(kind, FOLDER, more_room=False) == usual
    assert profiler_variables(kind, FOLDER, more_room=True) == with_more_room


def test_the_report_is_where_the_profiler_was_told_to_write() -> None:
    folder = profiler_variables(ProfilerKind.DEVICE, FOLDER, more_room=False)
    assert report_in(FOLDER) == Path(folder["TT_METAL_PROFILER_DIR"]) / REPORT
    assert report_in(FOLDER) == FOLDER / "profiler/.logs/cpp_device_perf_report.csv"
