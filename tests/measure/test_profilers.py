"""Profilers: their data, their reports, and the memory of a device."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.measure import profilers
from pytest_ttnn_perf.measure.devices import BesideDevices
from pytest_ttnn_perf.measure.profilers import (
    Chips,
    OpenDevices,
    ProfilerError,
    ProgramProfiler,
    RealtimeProfiler,
    Runtime,
    UsedDevice,
)
from pytest_ttnn_perf.measure.timing import Timings, Workload

if TYPE_CHECKING:
    from collections.abc import Callable


NO_TIME = "the real-time profiler reported an invalid time"
KERNEL = "DEVICE KERNEL DURATION [ns]"


def opened(ttnn: object, *meshes: tuple[int, ...]) -> OpenDevices:
    """Return devices as if they had been opened: one for each tuple of chips."""
    devices = OpenDevices(runtime=Runtime(ttnn))  # type: ignore[arg-type]
    for chips in meshes:
        used = UsedDevice(Hardware("wormhole_b0", "n150", "1x1"), chips, {})
        devices._open.append((f"mesh of {chips}", used))
    return devices


def program(kernel_ns: float, cores: int = 64, *, told: str = KERNEL) -> SimpleNamespace:
    results = {told: SimpleNamespace(duration=kernel_ns)}
    return SimpleNamespace(program_analyses_results=results, core_count=cores)


@dataclass
class Ttnn:
    """A build with Tracy: what it is asked, in order, and what it says."""

    latest: dict[int, list[SimpleNamespace]] = field(default_factory=dict)
    capturing: bool = False
    asked: list[str] = field(default_factory=list)

    def synchronize_device(self, device: object) -> None:
        self.asked.append(f"wait for {device}")

    def ReadDeviceProfiler(self, device: object) -> None:  # noqa: N802
        self.asked.append(f"read {device}")

    def get_latest_programs_perf_data(self) -> dict[int, list[SimpleNamespace]]:
        return self.latest

    def is_trace_capture_active(self, device: object) -> bool:
        return self.capturing and "1" in str(device)


def test_what_ran_on_each_chip_is_taken_in_the_order_of_the_chips() -> None:
    ttnn = Ttnn({1: [program(20, 8)], 0: [program(10), program(15.5, 1)]})
    assert ProgramProfiler(opened(ttnn, (0, 1))).take() == {0: [10.0, 15.5], 1: [20.0]}


@pytest.mark.parametrize(
    ("latest", "problem"),
    [
        ({}, "the device profiler recorded nothing"),
        ({0: [program(1)], 3: [program(1)], 5: []}, "nothing was recorded for chip 5 of 3"),
        (
            {0: [program(1), program(1, told="DEVICE FW DURATION [ns]")]},
            f"a program of chip 0 has no {KERNEL}",
        ),
        ({0: [program(math.nan)]}, f"a program of chip 0 has a {KERNEL} of nan"),
        ({0: [program(0)]}, f"a program of chip 0 has a {KERNEL} of 0"),
    ],
)
def test_what_is_not_whole_is_a_problem(
    latest: dict[int, list[SimpleNamespace]], problem: str
) -> None:
    with pytest.raises(ProfilerError) as raised:
        ProgramProfiler(opened(Ttnn(latest), (0, 3), (5,))).take()
    assert str(raised.value) == problem


@pytest.mark.parametrize("step", ["begin", "take"])
def test_a_trace_that_is_being_captured_is_not_spoilt(step: str) -> None:
    ttnn = Ttnn({0: [program(1)]}, capturing=True)
    with pytest.raises(ProfilerError) as raised:
        getattr(ProgramProfiler(opened(ttnn, (0,), (1,))), step)()
    assert str(raised.value) == (
        "a trace is being captured, during which the profiler cannot be read"
    )
    assert ttnn.asked == []


@dataclass
class Clock:
    """A time that passes only while somebody sleeps."""

    now_s: float = 50.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


@dataclass
class Realtime:
    """A real-time profiler whose records come when a test lets them."""

    clock: Clock
    chips: tuple[int, ...] = (0,)
    heard_by: dict[int, Callable[[Any], None]] = field(default_factory=dict)
    waited: int = 0
    active: bool = True

    def profiler(self) -> RealtimeProfiler:
        ttnn = ModuleType("ttnn")
        device = SimpleNamespace(
            IsProgramRealtimeProfilerActive=lambda: self.active,
            RegisterProgramRealtimeProfilerCallback=self.register,
            UnregisterProgramRealtimeProfilerCallback=self.heard_by.pop,
        )
        vars(ttnn).update(device=device, synchronize_device=self.wait)
        return RealtimeProfiler(opened(ttnn, self.chips))

    def register(self, callback: Callable[[Any], None]) -> int:
        handle = len(self.heard_by)
        self.heard_by[handle] = callback
        return handle

    def wait(self, _device: object) -> None:
        self.waited += 1

    def tell(self, *cycles: int, chip: int = 0, dropped: int = 0, frequency: float = 1.0) -> None:
        """Tell of programs that took so many cycles."""
        records = [
            SimpleNamespace(
                chip_id=chip, start_timestamp=100, end_timestamp=100 + each, frequency=frequency
            )
            for each in cycles
        ]
        for callback in list(self.heard_by.values()):
            callback(SimpleNamespace(records=records, dropped=dropped))


@pytest.fixture
def realtime(monkeypatch: pytest.MonkeyPatch) -> Realtime:
    """Return a real-time profiler with a time of its own."""
    realtime = Realtime(Clock())
    monkeypatch.setattr(profilers, "time", realtime.clock)
    return realtime


def times(iteration: Chips) -> list[float]:
    return [ns for times in iteration.values() for ns in times]


def test_programs_are_taken_iteration_by_iteration_without_the_warm_up(realtime: Realtime) -> None:
    profiler = realtime.profiler()
    profiler.begin()
    realtime.tell(10, 20)
    realtime.tell(30, frequency=1.5)
    assert profiler.take() == {0: [10.0, 20.0, 20.0]}
    realtime.tell(11, 0)
    assert times(profiler.take()) == [11.0, 0.0]
    assert realtime.waited == 3


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ([], "the real-time profiler recorded nothing"),
        ([{"dropped": 3}, {"dropped": 4}], "the real-time profiler dropped 7 records"),
        ([{"chip": 1}], "nothing was recorded for chip 0 of 2"),
        ([{"cycles": -5}], f"{NO_TIME}: -5 cycles at 1.0 per ns"),
        ([{"frequency": 0}], f"{NO_TIME}: 8 cycles at 0 per ns"),
    ],
)
def test_records_that_are_not_whole_or_no_times_are_a_problem(
    realtime: Realtime, told: list[dict[str, Any]], problem: str
) -> None:
    realtime.chips = (0, 1)
    profiler = realtime.profiler()
    profiler.begin()
    for each in told:
        realtime.tell(each.pop("cycles", 8), **each)
    with pytest.raises(ProfilerError) as raised:
        profiler.take()
    assert str(raised.value) == problem


def test_where_it_is_not_there_it_says_why(realtime: Realtime) -> None:
    older, inactive = realtime.profiler(), realtime.profiler()
    assert older.unavailable is None
    assert older.devices.runtime is not None
    vars(older.devices.runtime.ttnn)["device"] = SimpleNamespace()
    realtime.active = False
    for profiler, why in {
        "unimported": (RealtimeProfiler(OpenDevices()), "no device is open"),
        "closed": (RealtimeProfiler(opened(ModuleType("ttnn"))), "no device is open"),
        "older": (older, "this ttnn has no real-time profiler"),
        "inactive": (inactive, "the real-time profiler is not active on this system"),
    }.values():
        assert profiler.unavailable == why
        with pytest.raises(ProfilerError, match=f"^{why}$"):
            profiler.begin()
    assert realtime.heard_by == {}


@pytest.mark.parametrize("required", [True, False])
def test_one_that_is_not_there_is_no_data_only_where_it_was_asked_for(
    realtime: Realtime, *, required: bool
) -> None:
    realtime.active = False
    beside = BesideDevices(realtime.profiler().devices, realtime=True, required=required)
    _, found = beside.run(Workload(int), Timings(), (0, 1, None))
    why = "the real-time profiler is not active on this system"
    notes = [(each.metric.name, each.samples, each.note) for each in found.metrics]
    assert notes == ([("device_kernel_time", (), why)] if required else [])
    assert beside._facts.get("realtime_profiler") == (None if required else why)
