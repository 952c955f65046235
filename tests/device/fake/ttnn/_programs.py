"""Programs on the device: how long they take, what is compiled, captured and replayed."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from . import _machine, _profiler, _realtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .device import MeshDevice

#: What each function runs where the script says nothing else.
USUAL = {
    "add": "BinaryNgDeviceOperation",
    "relu": "UnaryDeviceOperation", "matmul": "MatmulDeviceOperation",
    "conv2d": "Conv2dDeviceOperation",
    "to_memory_config": "ReshardDeviceOperation",
}  # fmt: skip
_USUAL_NS = 1000.0
#: What a captured program takes of the trace region.
_BYTES_PER_TRACED_PROGRAM = 1024


@dataclass(frozen=True, slots=True)
class Run:
    """One execution on one chip, whose clock ticks once per nanosecond."""

    code: str
    chip: int
    runtime_id: int
    cores: int
    start: int
    end: int
    ns: float
    gap_ns: float
    trace: int | None
    replay: int | None

    @property
    def call_count(self) -> int:
        """The profiler's number of the program on this chip."""
        return self.runtime_id << 10 | self.chip


@dataclass(slots=True)
class Trace:
    """What was captured: programs with their ids, and how to do the sums again."""

    programs: list[tuple[Any, int]] = field(default_factory=list)
    sums: list[Callable[[], None]] = field(default_factory=list)
    replays: int = 0


class _State:
    runtime_id = 0
    traces = 0
    busy_ns = 0.0


_clocks: Counter[int] = Counter()


def scripted(by: str) -> Iterator[Any]:
    """Iterate over the programs of one call, with a number that tells them apart."""
    found = [op for op in _script().ops if op.by == by]
    usual = SimpleNamespace(ns=_USUAL_NS, code="", cores=1, chips=(), gap_ns=500.0)
    for number, op in enumerate(found or [usual]):
        yield SimpleNamespace(**{**vars(op), "code": op.code or USUAL[by], "key": (by, number)})


def launch(device: MeshDevice, by: str, tensor: dict[str, str]) -> list[tuple[Any, int]]:
    """Run the programs of a call, or capture them; return them with their runtime ids."""
    launched = []
    for op in scripted(by):
        _State.runtime_id += 1
        _cache(device, op)
        launched.append((op, _State.runtime_id))
        trace = device.capture
        for chip in _chips(device, op):
            known = {"code": op.code, "fidelity": "HiFi2", **tensor}
            number = _State.runtime_id << 10 | chip
            _profiler.host_event("op", id=number, chip=chip, captured=trace, **known)
        if trace is None:
            _execute(device, op, _State.runtime_id)
        else:
            device.traces[trace].programs.append((op, _State.runtime_id))
    return launched


def _cache(device: MeshDevice, op: Any) -> None:
    if op.key in device.cache:
        return
    if device.capture is not None:
        info = (
            "Cannot load new binaries during trace capture.This program is not yet in program "
            "cache. Warm up before capturing a trace."
        )
        raise _machine.fatal("distributed/mesh_workload.cpp:140", "!is_capturing", info)
    device.cache.add(op.key)
    device.cache_entries += 1
    _compile(op.code)


def _compile(code: str) -> None:
    """Fill the kernel cache: with the profiler other kernels are built."""
    context = _context()
    root = Path(context.options.get("TT_METAL_CACHE") or context.folder / "cache")
    build = "1418828801698136319" if context.profiled else "4639604641036353796"
    kernel = root / "tt-metal-cache" / build / "kernels" / code
    if not kernel.exists():
        kernel.mkdir(parents=True, exist_ok=True)


def _execute(device: MeshDevice, op: Any, runtime_id: int, trace: int | None = None) -> None:
    context = _context()
    context.reach_program()
    _State.busy_ns += op.gap_ns + op.ns
    replay = None if trace is None else device.traces[trace].replays
    for chip in _chips(device, op):
        start = _clocks[chip] + round(op.gap_ns)
        end = _clocks[chip] = start + round(op.ns)
        times = (start, end, op.ns, op.gap_ns)
        run = Run(op.code, chip, runtime_id, op.cores, *times, trace, replay)
        _profiler.keep(run)
        _realtime.emit(run)


def _chips(device: MeshDevice, op: Any) -> list[int]:
    return [chip for chip in device.chips if not op.chips or chip in op.chips]


def wait(device: MeshDevice) -> None:
    """Wait for the device, for as much time of the host as the script wants."""
    refuse_capture(device, "Event Synchronization is not supported during trace capture.")
    waiting_ns, _State.busy_ns = _State.busy_ns * _script().wall, 0.0
    if waiting_ns:
        time.sleep(waiting_ns / 1e9)


def refuse_capture(device: MeshDevice, info: str) -> None:
    """Raise if a trace is being captured on the device."""
    if device.capture is not None:
        raise _machine.fatal("distributed/fd_mesh_command_queue.cpp:388", "!trace_id_", info)


def begin_trace(device: MeshDevice) -> int:
    _State.traces += 1
    device.capture = _State.traces - 1
    device.traces[device.capture] = Trace()
    return device.capture


def end_trace(device: MeshDevice, trace: int) -> None:
    device.capture = None
    size = _BYTES_PER_TRACED_PROGRAM * len(device.traces[trace].programs)
    if size > device.trace_region_size:
        info = (
            f"Creating trace buffers of size {size}B on MeshDevice {device.id()}, but only "
            f"{device.trace_region_size}B is allocated for trace region."
        )
        raise _machine.fatal("distributed/mesh_trace.cpp:195", "false", info)


def replay(device: MeshDevice, trace: int) -> None:
    captured = device.traces[trace]
    captured.replays += 1
    _profiler.host_event("replay", trace=trace, replay=captured.replays)
    for op, runtime_id in captured.programs:
        _execute(device, op, runtime_id, trace)
    for again in captured.sums:
        again()


def write_logs() -> None:
    """Leave the files that opening any device leaves."""
    root = Path(_context().options.get("TT_METAL_LOGS_PATH") or Path.cwd())
    for name in ("fabric", "inspector", "watcher"):
        folder = root / "generated" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.log").write_text(f"{os.getpid()}\n")


def _context() -> _machine.Context:
    found = _machine.existing()
    assert found is not None, "a program ran without a device"
    return found


def _script() -> Any:
    return _context().script
