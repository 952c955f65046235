"""The raw device log: how long programs ran, and on which cores longer than on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.device_csv import (
    DeviceLog,
    ProgramTime,
    log_metrics,
    read_device_log,
)
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation

if TYPE_CHECKING:
    from pathlib import Path


CHIP = "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 500, Max Compute Cores: 64\n"
HEADER = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, "
    "run host ID, trace id, trace id counter, zone name, type, source line, source file, "
    "meta data\n"
)
OLD_HEADER = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], "
    "stat value, run ID, run host ID,  zone name, zone phase, source line, source file\n"
)


def row(
    time: int, kind: str, *, device: int = 0, x: int = 1, risc: str = "BRISC", run: int = 7,
    trace: str = ",", zone: str = "BRISC-KERNEL",
) -> str:  # fmt: skip
    return f"{device},{x},2,{risc},99,{time},0,{run},{trace},{zone},{kind},5,k.cc,\n"


def zone(start: int, end: int, **more: object) -> str:
    return row(start, "ZONE_START", **more) + row(end, "ZONE_END", **more)  # type: ignore[arg-type]


def read(tmp_path: Path, text: str | bytes) -> DeviceLog:
    file = tmp_path / "profile_log_device.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_device_log(file)


def test_a_program_on_two_cores(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        CHIP
        + HEADER
        + zone(100, 160)
        + zone(110, 170, risc="TRISC_1", zone="TRISC-KERNEL")
        + zone(105, 125, x=3)
        + zone(90, 400, zone="BRISC-FW")
        + row(5, "TS_DATA", zone="BRISC-KERNEL"),
    )
    assert (log.arch, log.clock_mhz, log.max_compute_cores, log.rows) == (
        "wormhole_b0", 500.0, 64, 9,
    )  # fmt: skip
    (program,) = log.programs
    assert log.complete
    assert (program.device, program.run_host_id, program.trace, program.replay) == (
        0,
        7,
        None,
        None,
    )
    assert (program.start_cycle, program.kernel_ns, program.cores) == (100, 140.0, 2)


def test_programs_are_told_apart_by_device_run_trace_and_replay(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        CHIP
        + HEADER
        + zone(500, 510, trace="3,2")
        + zone(100, 110, trace="3,1")
        + zone(50, 60, run=8)
        + zone(10, 30, device=1),
    )
    keys = [(p.device, p.run_host_id, p.trace, p.replay, p.kernel_ns) for p in log.programs]
    assert keys == [
        (0, 8, None, None, 20.0),
        (0, 7, 3, 1, 20.0),
        (0, 7, 3, 2, 20.0),
        (1, 7, None, None, 40.0),
    ]


def test_executions_that_nothing_tells_apart_are_counted(tmp_path: Path) -> None:
    text = CHIP + HEADER + "".join(zone(at, at + 5 + at // 100) for at in (100, 200, 300))
    log = read(tmp_path, text)
    assert [program.kernel_ns for program in log.programs] == [12.0, 14.0, 16.0]


def test_the_first_form(tmp_path: Path) -> None:
    rows = (
        "0,1,2,BRISC,9,100,0,4,7,BRISC-KERNEL,begin,5,k.cc\n"
        "0,1,2,BRISC,9,150,0,4,7,BRISC-KERNEL,end,5,k.cc\n"
    )
    log = read(tmp_path, CHIP.replace(", Max Compute Cores: 64", "") + OLD_HEADER + rows)
    assert log.max_compute_cores is None
    assert [(p.run_host_id, p.kernel_ns) for p in log.programs] == [(7, 100.0)]


@pytest.mark.parametrize("lost", ["ZONE_START", "ZONE_END"])
def test_a_program_without_a_marker_has_no_time(tmp_path: Path, lost: str) -> None:
    torn = zone(100, 160, x=3).splitlines(keepends=True)
    kept = "".join(line for line in torn if lost not in line)
    log = read(tmp_path, CHIP + HEADER + zone(100, 160) + kept + zone(1, 5, run=9))
    assert not log.complete
    whole, cut = log.programs
    assert (whole.run_host_id, whole.kernel_ns) == (9, 8.0)
    assert (cut.kernel_ns, cut.cores) == (None, 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        (CHIP.replace("500", "0"), "found 0 MHz"),
        (CHIP, "the file ends before its header"),
        (CHIP + HEADER.replace("run host ID", "run"), "expected a column 'run host ID'"),
        (CHIP + HEADER + "1,2\n", "expected 15 values as in the header, found 2"),
        (CHIP + HEADER + row(1, "ZONE_END")[:20], "the file is cut: its last line has"),
        (
            CHIP + HEADER + row(1, "ZONE_END").replace("7,", "x,"),
            "run host ID: expected a number, found 'x'",
        ),
    ],
)
def test_a_log_that_is_none(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, text)


TIME = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, Source.DEVICE)
COUNT = Metric("program_count", "", Better.LOWER, Kind.COUNT, Source.DEVICE)


def ran(
    number: int, ns: float | None, *, device: int = 0, trace: int | None = None,
    replay: int | None = None,
) -> ProgramTime:  # fmt: skip
    return ProgramTime(device, number, trace, replay, 5, ns, 1)


def observed(*times: float, programs: int) -> list[MetricObservation]:
    return [MetricObservation(TIME, times), MetricObservation(COUNT, (programs,))]


def nothing(why: str) -> list[MetricObservation]:
    return [MetricObservation(TIME, (), note=f"log.csv: {why}")]


@pytest.mark.parametrize(
    ("programs", "expected"),
    [
        ([ran(1, 10.0), ran(2, 20.0), ran(1, 12.0)], observed(42.0, programs=3)),
        ([ran(1, 10.0), ran(2, 20.0), ran(1, 90.0, device=1)], observed(90.0, programs=2)),
        (
            [
                ran(7, 9_000.0), ran(7, 9_000.0, trace=1),
                ran(1, 10.0, trace=1, replay=1), ran(2, 20.0, trace=1, replay=1),
                ran(2, 21.0, trace=1, replay=2), ran(1, 10.0, trace=1, replay=2),
            ],
            observed(30.0, 31.0, programs=2),
        ),
        (
            [
                ran(1, 10.0, trace=1, replay=1), ran(1, 30.0, trace=1, replay=2),
                ran(1, 20.0, device=1, trace=1, replay=1),
                ran(1, 20.0, device=1, trace=1, replay=2),
            ],
            observed(20.0, 30.0, programs=1),
        ),
        (
            [ran(1, 10.0, trace=1, replay=1), ran(5, 30.0, trace=2, replay=1)],
            observed(40.0, programs=2),
        ),
        (
            [ran(1, 10.0), ran(2, None, device=3)],
            nothing("program 2 on device 3 lacks a marker: the profiler dropped it, or the log "
                    "is cut"),
        ),
        (
            [
                ran(1, 10.0, trace=4, replay=1), ran(2, 10.0, trace=4, replay=1),
                ran(1, 10.0, trace=4, replay=2),
            ],
            nothing("the replays of trace 4 on device 0 ran different programs"),
        ),
        ([], nothing("no kernel ran")),
    ],
    ids=["without traces", "devices side by side", "every replay is a sample",
         "slowest device of each replay", "traces replayed together", "a marker is missing",
         "other programs in a replay", "no kernels"],
)  # fmt: skip
def test_the_kernel_time_of_a_log(
    programs: list[ProgramTime], expected: list[MetricObservation]
) -> None:
    log = DeviceLog("wormhole_b0", 1000.0, 64, 99, tuple(programs))
    assert list(log_metrics(log, file="log.csv")) == expected
